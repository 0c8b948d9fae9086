import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

# Initialize distributed process group
dist.init_process_group(backend='nccl')

# Create model and move to correct GPU
local_rank = int(os.environ['LOCAL_RANK'])
model = MyModel().cuda(local_rank)

# Wrap with DDP
model = DDP(model, device_ids=[local_rank])

# Use DistributedSampler for data loading
sampler = torch.utils.data.distributed.DistributedSampler(dataset)
loader = DataLoader(dataset, sampler=sampler, batch_size=32)
