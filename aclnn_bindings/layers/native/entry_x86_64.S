// Where every hooked stub arrives: r10 has the shim's descriptor, r11 the symbol's number.
//
// Saves what the caller passed (System V ABI, AMD64 supplement, 3.2.3: rdi, rsi, rdx, rcx, r8, r9,
// xmm0-7, rax for the count of vector registers), asks layers_before what to do, and then jumps to
// the real function as if nothing had been, or calls it with a copy of the stack arguments, tells
// layers_after, and returns what it returned. Offsets: struct Frame in frame.h.
#if defined(__x86_64__)
        .text
        .globl  mindtorch_layers_entry
        .type   mindtorch_layers_entry, @function
        .p2align 4
mindtorch_layers_entry:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $640, %rsp
        movq    %rbx, 632(%rsp)
        .cfi_offset %rbx, -24
        movq    %rsp, %rbx
        movq    %rdi, 0(%rbx)
        movq    %rsi, 8(%rbx)
        movq    %rdx, 16(%rbx)
        movq    %rcx, 24(%rbx)
        movq    %r8, 32(%rbx)
        movq    %r9, 40(%rbx)
        movaps  %xmm0, 64(%rbx)
        movaps  %xmm1, 80(%rbx)
        movaps  %xmm2, 96(%rbx)
        movaps  %xmm3, 112(%rbx)
        movaps  %xmm4, 128(%rbx)
        movaps  %xmm5, 144(%rbx)
        movaps  %xmm6, 160(%rbx)
        movaps  %xmm7, 176(%rbx)
        movq    %r10, 192(%rbx)
        movq    %r11, 200(%rbx)
        movq    8(%rbp), %rcx
        movq    %rcx, 208(%rbx)
        leaq    16(%rbp), %rcx
        movq    %rcx, 216(%rbx)
        movq    %rax, 240(%rbx)
        movq    %rbx, %rdi
        call    layers_before
        testl   %eax, %eax
        je      .Ljump
        cmpl    $2, %eax
        je      .Lreturn
        movq    232(%rbx), %rcx
        leaq    1(%rcx), %rax
        andq    $-2, %rax
        leaq    0(,%rax,8), %rax
        subq    %rax, %rsp
        movq    216(%rbx), %rsi
        movq    %rsp, %rdi
        cld
        rep movsq
        call    .Lrestore
        movq    240(%rbx), %rax
        call    *224(%rbx)
        movq    %rbx, %rsp
        movq    %rax, 256(%rbx)
        movq    %rdx, 264(%rbx)
        movaps  %xmm0, 272(%rbx)
        movaps  %xmm1, 288(%rbx)
.Lreturn:
        movq    %rbx, %rdi
        call    layers_after
        movq    256(%rbx), %rax
        movq    264(%rbx), %rdx
        movaps  272(%rbx), %xmm0
        movaps  288(%rbx), %xmm1
        movq    632(%rbx), %rbx
        leave
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_restore_state
.Ljump:
        call    .Lrestore
        movq    240(%rbx), %rax
        movq    224(%rbx), %r11
        movq    632(%rbx), %rbx
        leave
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        jmp     *%r11
        .cfi_restore_state
.Lrestore:
        movq    0(%rbx), %rdi
        movq    8(%rbx), %rsi
        movq    16(%rbx), %rdx
        movq    24(%rbx), %rcx
        movq    32(%rbx), %r8
        movq    40(%rbx), %r9
        movaps  64(%rbx), %xmm0
        movaps  80(%rbx), %xmm1
        movaps  96(%rbx), %xmm2
        movaps  112(%rbx), %xmm3
        movaps  128(%rbx), %xmm4
        movaps  144(%rbx), %xmm5
        movaps  160(%rbx), %xmm6
        movaps  176(%rbx), %xmm7
        ret
        .cfi_endproc
        .size   mindtorch_layers_entry, .-mindtorch_layers_entry
#endif
        .section .note.GNU-stack,"",@progbits
