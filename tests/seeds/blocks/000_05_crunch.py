import torch
from datetime import datetime

torch.cuda.is_available()
torch.cuda.device_count()
torch.cuda.get_device_name(torch.cuda.current_device())

size = 2048


def measure_time(func):
    def inner_func(hw):
        start = datetime.now()
        func(hw)
        end = datetime.now()
        td = (end - start).total_seconds()
        print(f"Run on {hw}. Time of execution: {td:.03f}[s]. Matrix size: {size}")
    return inner_func

@measure_time
def crunch_the_numbers(hw):
    print(f"Crunching numbers on {hw} . . .")
    a = torch.rand(size, size, device=hw, dtype=torch.float16)
    b = torch.rand(size, size, device=hw, dtype=torch.float16)
    c = torch.rand(size, size, device=hw, dtype=torch.float16)

    for x in range(size):
        y0 = a + b
        y1 = y0 + c
        y2 = y1 * a
        y3 = y2 - b
        y4 = y2 + y3
        y5 = 0.33 * a + 0.66 * b + c * 0.9
        y = y1 + y2
        y = y2 + y3
        y = y3 + y4
        y = y4 + y5
 

# ON CPU
crunch_the_numbers("cpu")
print(f"Done on CPU (size={size}).")

# ON GPU
crunch_the_numbers("cuda")
print(f"Done on GPU (size={size}).")
