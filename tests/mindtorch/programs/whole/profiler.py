import torch, sys
from torch.profiler import profile, record_function, ProfilerActivity, schedule

dev = sys.argv[1]
x = torch.randn(8, 8).to(dev)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2)) as p:
    for _ in range(4):
        with record_function("step"):
            (x @ x).relu().sum()
        p.step()
names = {e.key for e in p.key_averages()}
print("step" in names, "aten::relu" in names, "aten::sum" in names, p.step_num)
t = p.key_averages().table(sort_by="cpu_time_total", row_limit=3)
print("Self CPU" in t, "# of Calls" in t)
with torch.autograd.profiler.profile() as q:
    x + 1
print(
    any(e.name == "aten::add" for e in q.function_events),
    [e.count for e in q.key_averages() if e.key == "aten::add"],
)
