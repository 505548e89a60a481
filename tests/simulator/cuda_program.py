"""A program written for CUDA, as `transfer_to_npu` lets it run on npu; prints what both print."""

import torch
import torch_npu  # noqa: F401
from torch import nn
from torch_npu.contrib import transfer_to_npu  # noqa: F401

print(torch.cuda.is_available(), torch.cuda.device_count() > 0, torch.cuda.current_device())
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
print(device.type, torch.device("cuda"), torch.cuda.is_bf16_supported())
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
model = model.cuda()
print(next(model.parameters()).device, next(model.parameters()).is_cuda)
data, target = torch.randn(4, 8).cuda(), torch.tensor([0, 1, 1, 0], device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
for _ in range(3):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16, enabled=False):
        loss = nn.functional.cross_entropy(model(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"{loss.item():.4f}")
with torch.cuda.amp.autocast(dtype=torch.float16):
    print(model(data).dtype)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    doubled = data * 2
torch.cuda.synchronize()
torch.cuda.current_stream().wait_stream(stream)
print(torch.equal(doubled.cpu(), data.cpu() * 2), torch.zeros(2, device="cuda").device)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
end.record()
end.synchronize()
print(start.elapsed_time(end) >= 0)
print(torch.cuda.memory_allocated() > 0, torch.cuda.max_memory_allocated() > 0)
torch.cuda.empty_cache()
print(torch.tensor([1.0]).to("cuda:0", non_blocking=True).device, data.to(device).is_cuda)
print(isinstance(torch.cuda.get_device_name(0), str), torch.cuda.get_rng_state().dtype)
loader = torch.utils.data.DataLoader(range(4), batch_size=2, pin_memory=False)
print([batch.cuda().sum().item() for batch in loader])
generator = torch.Generator(device="cuda")
generator.manual_seed(1)
print(torch.rand(2, generator=generator, device="cuda").shape)
with torch.cuda.device(0):
    print(torch.ones(2).cuda().sum().item())
state = {k: v.cpu() for k, v in model.state_dict().items()}
torch.save(state, "model.pt")
print(torch.load("model.pt", map_location="cuda")["0.bias"].device)
