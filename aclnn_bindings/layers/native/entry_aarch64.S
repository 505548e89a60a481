// Where every hooked stub arrives: x16 has the shim's descriptor, x17 the symbol's number.
//
// The same as entry_x86_64.S for the Procedure Call Standard of the Arm 64-bit Architecture, 6.8:
// x0-x7 and v0-v7 carry arguments, x8 the place of an indirect result, the rest lies on the stack.
// Offsets: struct Frame in frame.h.
#if defined(__aarch64__)
        .text
        .globl  mindtorch_layers_entry
        .type   mindtorch_layers_entry, %function
        .p2align 4
mindtorch_layers_entry:
        .cfi_startproc
        hint    #38                     // bti jc
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        str     x19, [sp, #16]
        .cfi_offset 19, -16
        mov     x29, sp
        .cfi_def_cfa 29, 32
        sub     sp, sp, #640
        mov     x19, sp
        stp     x0, x1, [x19, #0]
        stp     x2, x3, [x19, #16]
        stp     x4, x5, [x19, #32]
        stp     x6, x7, [x19, #48]
        stp     q0, q1, [x19, #64]
        stp     q2, q3, [x19, #96]
        stp     q4, q5, [x19, #128]
        stp     q6, q7, [x19, #160]
        stp     x16, x17, [x19, #192]
        add     x9, x29, #32
        stp     x30, x9, [x19, #208]
        str     x8, [x19, #240]
        mov     x0, x19
        bl      layers_before
        cbz     w0, 3f
        cmp     w0, #2
        b.eq    2f
        ldr     x10, [x19, #232]
        add     x11, x10, #1
        and     x11, x11, #-2
        sub     sp, sp, x11, lsl #3
        ldr     x12, [x19, #216]
        mov     x13, sp
1:      cbz     x10, 4f
        ldr     x14, [x12], #8
        str     x14, [x13], #8
        sub     x10, x10, #1
        b       1b
4:      bl      5f
        ldr     x9, [x19, #224]
        blr     x9
        mov     sp, x19
        stp     x0, x1, [x19, #256]
        stp     q0, q1, [x19, #272]
        stp     q2, q3, [x19, #304]
2:      mov     x0, x19
        bl      layers_after
        ldp     x0, x1, [x19, #256]
        ldp     q0, q1, [x19, #272]
        ldp     q2, q3, [x19, #304]
        add     sp, x19, #640
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        ret
3:      bl      5f
        ldr     x16, [x19, #224]
        add     sp, x19, #640
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        br      x16
5:      ldp     x0, x1, [x19, #0]
        ldp     x2, x3, [x19, #16]
        ldp     x4, x5, [x19, #32]
        ldp     x6, x7, [x19, #48]
        ldp     q0, q1, [x19, #64]
        ldp     q2, q3, [x19, #96]
        ldp     q4, q5, [x19, #128]
        ldp     q6, q7, [x19, #160]
        ldr     x8, [x19, #240]
        ret
        .cfi_endproc
        .size   mindtorch_layers_entry, .-mindtorch_layers_entry
#endif
        .section .note.GNU-stack,"",%progbits
