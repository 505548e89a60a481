import torch, sys

dev = sys.argv[1]
torch.manual_seed(18)
A = torch.randn(4, 4)
A = (A @ A.T + 4 * torch.eye(4)).to(dev)
b = torch.randn(4).to(dev)
x = torch.zeros(4, device=dev)
r = b - A @ x
p = r.clone()
k = 0
while r.norm() > 1e-5 and k < 20:
    Ap = A @ p
    a = (r @ r) / (p @ Ap)
    x = x + a * p
    rn = r - a * Ap
    p = rn + (rn @ rn) / (r @ r) * p
    r = rn
    k += 1
print(k <= 6, torch.allclose(A @ x, b, atol=1e-3), x)
print(torch.linalg.solve(A, b), torch.linalg.inv(A)[0], torch.linalg.cond(A), sep="\n")
L = torch.linalg.cholesky(A)
print(L, torch.cholesky_solve(b[:, None], L).T, torch.logdet(A))
w, v = torch.linalg.eigh(A)
print(w)
print(torch.linalg.svdvals(A), torch.linalg.matrix_rank(A))
try:
    torch.linalg.inv(torch.zeros(2, 2, device=dev))
except Exception as e:
    print(type(e).__name__)
try:
    torch.linalg.cholesky(-torch.eye(2, device=dev))
except Exception as e:
    print(type(e).__name__)
