"""Streams and events, of torch.cuda and of torch itself."""

import pytest

import tessera as torch


def test_streams_are_compared_by_what_they_are(accelerator):
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    assert a == a and a != b and hash(a) == hash(a) and a != 3
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert hash(torch.cuda.current_stream()) == hash(torch.cuda.default_stream())
    assert {a: 1}[torch.cuda.ExternalStream(a.cuda_stream)] == 1
    again = torch.cuda.Stream(stream_id=a.stream_id, device_index=0, device_type=a.device_type)
    assert again == a and again.device == torch.device("cuda:0")


def test_kinds(accelerator):
    for stream in (
        torch.cuda.Stream(),
        torch.cuda.current_stream(),
        torch.cuda.default_stream("cuda:0"),
        torch.cuda.ExternalStream(torch.cuda.Stream().cuda_stream),
        torch.cuda.get_stream_from_external(torch.cuda.Stream().cuda_stream),
    ):
        assert isinstance(stream, torch.cuda.Stream) and isinstance(stream, torch.Stream)
        assert repr(stream).startswith("<torch.cuda.Stream device=cuda:0 cuda_stream=0x")
        assert stream.device_index == 0 and stream.device == torch.device("cuda:0")
    assert isinstance(torch.cuda.Event(), torch.Event)
    assert "uninitialized" in repr(torch.cuda.Event())
    assert isinstance(torch.Stream("cuda"), torch.Stream) and torch.Stream(device="cuda:0").query()
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.Stream("cpu")


def test_priorities(accelerator):
    least, greatest = torch.cuda.Stream.priority_range()
    assert least == 0 and greatest <= 0
    assert torch.cuda.Stream().priority == 0 == torch.cuda.current_stream().priority
    assert torch.cuda.Stream(priority=greatest).priority == greatest
    assert torch.cuda.Stream(priority=-100).priority == greatest
    with pytest.raises(RuntimeError, match="less than or equal to 0, got 1"):
        torch.cuda.Stream(priority=1)


def test_streams_come_from_a_pool(accelerator):
    assert len({torch.cuda.Stream().cuda_stream for _ in range(200)}) <= 32


def test_current_stream(accelerator):
    s, default = torch.cuda.Stream(), torch.cuda.current_stream()
    with torch.cuda.stream(s) as nothing:
        assert nothing is None and torch.cuda.current_stream() == s
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == s
        with torch.cuda.StreamContext(default):
            assert torch.cuda.current_stream() == default
        assert torch.accelerator.current_stream() == s
    with torch.Stream(device="cuda") as t:
        assert torch.cuda.current_stream() == t
    with s, s:
        assert torch.cuda.current_stream() == s
    assert torch.cuda.current_stream() == default
    torch.cuda.set_stream(s)
    assert torch.cuda.current_stream() == s
    torch.cuda.set_stream(default)
    torch.cuda.set_stream(None)
    assert torch.cuda.current_stream() == default


def test_streams_of_devices(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    s = torch.cuda.Stream("cuda:1")
    assert s.device_index == 1 and torch.cuda.current_stream(1) != s
    with torch.cuda.stream(s):
        assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == s
        assert torch.cuda.current_stream(0) == torch.cuda.default_stream(0)
    assert torch.cuda.current_device() == 0
    event = s.record_event()
    assert event.device == torch.device("cuda:1")
    torch.cuda.current_stream(0).wait_event(event)
    with pytest.raises(RuntimeError, match="does not match recording stream's device"):
        event.record(torch.cuda.current_stream(0))


def test_events_order_work(accelerator):
    s = torch.cuda.Stream()
    x = torch.zeros(1 << 18, device="cuda")
    for i in range(20):
        x += 1
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x * 2
            event = torch.cuda.Event()
            event.record()
        x.record_stream(s)
        event.wait()
        y.record_stream(torch.cuda.current_stream())
        assert y.min().item() == y.max().item() == 2 * (i + 1)
    s.synchronize()
    assert s.query() and event.query()


def test_time_between_events(accelerator):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    x = torch.rand(200, 200, device="cuda")
    for _ in range(5):
        x = x @ x
    torch.cuda.current_stream().record_event(end)
    torch.cuda.synchronize()
    assert 0 <= begin.elapsed_time(end) < 60_000


def test_times_that_cannot_be_told(accelerator):
    plain, timed = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
    assert plain.query()  # never recorded: nothing to wait for
    plain.synchronize()
    plain.wait()
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.cuda.Event(enable_timing=True))
    with pytest.raises(NotImplementedError):
        torch.cuda.Event(interprocess=True)


def test_record_stream_is_for_device_memory(accelerator):
    with pytest.raises(RuntimeError, match="the tensor is on cpu"):
        torch.ones(1).record_stream(torch.cuda.current_stream())


def test_generic_events(accelerator):
    a, b = (torch.Event(device="cuda", enable_timing=True) for _ in range(2))
    assert a.device is None
    a.record()
    b.record(torch.cuda.current_stream())
    b.synchronize()
    assert a.elapsed_time(b) >= 0 and a.device == torch.device("cuda:0")
