"""SummaryWriter: what programs log with."""

import os
import socket
import time
from datetime import datetime

from . import summary
from .event_file import FileWriter


class SummaryWriter:
    """Writes numbers, text, pictures and histograms to a folder for TensorBoard."""

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ):
        if not log_dir:
            when = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{when}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue = purge_step, max_queue
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self._writers = {}
        self.file_writer = self._writer(self.log_dir)

    def _writer(self, folder):
        if folder not in self._writers:
            self._writers[folder] = FileWriter(
                folder, self.max_queue, self.flush_secs, self.filename_suffix
            )
        return self._writers[folder]

    def get_logdir(self):
        return self.log_dir

    def add_scalar(
        self,
        tag,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style=False,
        double_precision=False,
    ):
        """A number at a step."""
        self.file_writer.add_summary(summary.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one plot; each has a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            writer = self._writer(folder)
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        self.file_writer.add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_histogram(
        self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ):
        """How often values lie where."""
        encoded = summary.histogram(tag, values, bins, max_bins)
        self.file_writer.add_summary(encoded, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture of uint8, or of numbers from 0 to 1."""
        encoded = summary.image(tag, img_tensor, dataformats)
        self.file_writer.add_summary(encoded, global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """A batch of pictures, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of Matplotlib's, or a list of them."""
        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        for one in figures:
            one.canvas.draw()
            width, height = one.canvas.get_width_height()
            pixels = summary.as_tensor(list(bytes(one.canvas.buffer_rgba())))
            pixels = pixels.to(summary.torch.uint8).reshape(height, width, 4)[..., :3]
            self.add_image(tag, pixels, global_step, walltime, "HWC")
            if close:
                import matplotlib.pyplot as plt

                plt.close(one)

    def flush(self):
        for writer in self._writers.values():
            writer.flush()

    def close(self):
        for writer in self._writers.values():
            writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def _later(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"SummaryWriter.{name} is not implemented in Tessera yet")

    method.__name__ = method.__qualname__ = name
    return method


for _name in (
    "add_graph add_embedding add_hparams add_video add_audio add_pr_curve add_mesh "
    "add_histogram_raw add_custom_scalars add_custom_scalars_marginchart "
    "add_custom_scalars_multilinechart add_image_with_boxes add_pr_curve_raw add_tensor"
).split():
    setattr(SummaryWriter, _name, _later(_name))
