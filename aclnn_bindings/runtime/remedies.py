"""What to do about a failed call, by symbolic code name and operator; refuses to guess a cause.

Codes are keyed by name because their numbers belong to the install's headers. Sources: CANN's API
documents (return codes, executor and memory rules) unless a row says "reported", which marks what
users met on hardware and nobody here has measured.
"""

from __future__ import annotations

from typing import Final

REMEDIES: Final[dict[str, str]] = {
    "ACLNN_ERR_PARAM_NULLPTR": "a required argument is NULL: pass every parameter that the "
    "operator's document does not call optional",
    "ACLNN_ERR_PARAM_INVALID": "check dtypes against this SoC's list, shapes against the rule for "
    "`out`, and rank (8 at most for most operators); CANN's message names the argument",
    "ACLNN_ERR_RUNTIME_ERROR": "the SoC may not support this operator: see `mindtorch-npu probe "
    "--op NAME`",
    "ACLNN_ERR_INNER": "the kernel package may lack a binary for this SoC: install the "
    "`opp_kernel` (Ascend-cann-kernels) package that matches the chip and the toolkit",
    "ACLNN_ERR_INNER_TILING_ERROR": "this combination of sizes and attributes is not supported by "
    "the kernel: change the shape, layout or mode",
    "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": "no kernel for these dtypes on this SoC: install the "
    "matching kernels package or cast the inputs",
    "ACLNN_ERR_INNER_CREATE_EXECUTOR": "too many executors may be alive: run or destroy each one "
    "that phase 1 returned (reported: about 150 undrained calls exhaust the pool)",
    "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR": "the executor was already used or destroyed: phase 2 "
    "takes it once unless it was made repeatable",
    "ACLNN_ERR_INNER_NULLPTR": "an internal step failed: pass contiguous inputs with the storage "
    "base pointer and an element offset, and the format that the operator wants (NCHW for "
    "convolution, pooling and batch norm); an earlier failed call can also cause it (reported)",
    "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND": "set ASCEND_OPP_PATH to the toolkit's `opp` folder: "
    "source its set_env.sh",
    "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": "install the kernels package "
    "(Ascend-cann-kernels-<soc>) of the toolkit's version",
    "ACLNN_ERR_INNER_LOAD_JSON_FAILED": "the kernels package is damaged or of another version: "
    "reinstall it",
    "ACL_ERROR_INVALID_PARAM": "a pointer is NULL or a size is not positive",
    "ACL_ERROR_UNINITIALIZE": "call aclInit (or open the library) before any other call",
    "ACL_ERROR_REPEAT_INITIALIZE": "aclInit was already called in this process: harmless",
    "ACL_ERROR_REPEAT_FINALIZE": "aclFinalize was already called in this process",
    "ACL_ERROR_INVALID_FILE": "the file does not exist or cannot be read; for version queries, "
    "set ASCEND_HOME_PATH",
    "ACL_ERROR_COMPILING_STUB_MODE": "the stub libraries of `devlib` were loaded: put the driver's "
    "and the toolkit's lib64 before devlib in LD_LIBRARY_PATH",
    "ACL_ERROR_RT_PARAM_INVALID": "a value, size or handle is out of range; for a copy, check that "
    "the destination is as large as the count",
    "ACL_ERROR_RT_INVALID_DEVICEID": "the device does not exist: see ASCEND_RT_VISIBLE_DEVICES and "
    "`npu-smi info`",
    "ACL_ERROR_RT_CONTEXT_NULL": "this thread has no device: call aclrtSetDevice in it",
    "ACL_ERROR_RT_STREAM_CONTEXT": "the stream belongs to another context or device: make that one "
    "current first",
    "ACL_ERROR_RT_FEATURE_NOT_SUPPORT": "the SoC or driver does not support this feature",
    "ACL_ERROR_RT_MEMORY_ALLOCATION": "device memory is exhausted: free tensors, empty the cache, "
    "or look for other processes with `npu-smi info`",
    "ACL_ERROR_RT_NO_DEVICE": "no NPU is visible: check the driver, /dev/davinci* and "
    "ASCEND_RT_VISIBLE_DEVICES",
    "ACL_ERROR_RT_NO_PERMISSION": "the user may not open the device: join the group HwHiAiUser or "
    "start the container with the device files",
    "ACL_ERROR_RT_NO_EVENT_RESOURCE": "too many events are alive: destroy or reuse them",
    "ACL_ERROR_RT_NO_STREAM_RESOURCE": "too many streams are alive: destroy or reuse them",
    "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID": "an event has no timestamp yet: make both with timing "
    "enabled and synchronize before asking for the time between them",
    "ACL_ERROR_RT_CONTEXT_RELEASE_ERROR": "the device was not set, or already reset",
    "ACL_ERROR_RT_STREAM_CAPTURED": "the stream is being captured: end the capture first",
    "ACL_ERROR_RT_EVENT_CAPTURED": "the event belongs to a capture: end the capture first",
    "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT": "synchronous calls are not allowed during capture",
    "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT": "the stream is still running: wait longer, or look for a "
    "kernel that hangs",
    "ACL_ERROR_RT_WAIT_TIMEOUT": "what was waited for is still running: wait longer, or look for "
    "a kernel or a rank that hangs",
    "ACL_ERROR_RT_TASK_TIMEOUT": "a task ran longer than aclrtSetOpExecuteTimeOut allows: look for "
    "a kernel that hangs, or allow more",
    "ACL_ERROR_RT_DEVICE_TASK_ABORT": "the device's tasks were aborted (aclrtDeviceTaskAbort): "
    "make the work again",
    "ACL_ERROR_RT_STREAM_ABORT": "the stream was aborted (aclrtStreamAbort): make the work again "
    "on a new stream",
    "ACL_ERROR_RT_AICORE_EXCEPTION": "a kernel faulted on the device, often by an index out of "
    "range; set ASCEND_LAUNCH_BLOCKING=1 to see which call it was",
    "ACL_ERROR_RT_AICPU_EXCEPTION": "an AI CPU kernel faulted on the device, often by an index out "
    "of range; set ASCEND_LAUNCH_BLOCKING=1 to see which call it was",
    "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION": "a kernel faulted on the device, often by an address out "
    "of range; set ASCEND_LAUNCH_BLOCKING=1 to see which call it was",
    "ACL_ERROR_RT_DEV_SETUP_ERROR": "the device could not be opened: another process may hold it, "
    "or driver and firmware differ",
    "ACL_ERROR_RT_DRV_INTERNAL_ERROR": "the driver failed: see `dmesg` and /var/log/npu, and check "
    "that driver and toolkit versions go together",
    "ACL_ERROR_RT_INTERNAL_ERROR": "the runtime failed: see the plog files under ~/ascend/log",
}

# (operator, code name) → remedy: rows are more specific than the code's own.
OP_REMEDIES: Final[dict[tuple[str, str], str]] = {
    ("aclnnMatmul", "ACLNN_ERR_PARAM_INVALID"): "FLOAT with cubeMathType 0 is refused by 910-class "
    "chips: use cubeMathType 1 (as the operator's document says for that product)",
    ("aclnnInplaceCopy", "ACLNN_ERR_INNER_NULLPTR"): "reported: strides with gaps or overlap are "
    "refused; copy through a contiguous tensor",
    ("aclnnIsInf", "ACLNN_ERR_PARAM_NULLPTR"): "reported on 910 and 310B, where documents exclude "
    "the operator: compute it from aclnnIsFinite and aclnnReciprocal",
    ("aclnnBatchNorm", "ACLNN_ERR_INNER_NULLPTR"): "reported: give the input format NCHW, and "
    "FLOAT saveMean and saveInvstd that are not NULL",
    ("aclnnGroupNorm", "ACLNN_ERR_INNER_NULLPTR"): "reported: give FLOAT meanOut and rstdOut that "
    "are not NULL, and initialise with the lite_exception dump scene",
    ("aclnnCat", "ACLNN_ERR_INNER_NULLPTR"): "reported: strided views are refused on some "
    "versions; make the members contiguous",
    ("aclnnMaxPool", "ACLNN_ERR_PARAM_INVALID"): "FLOAT16 only, and `pads` has four entries",
    ("aclnnAvgPool3d", "ACLNN_ERR_INNER"): "reported: the kernels package has no binary for it on "
    "910-class chips",
}


def remedy_for(name: str, op: str | None = None) -> str | None:
    """What to do about code `name` from operator `op` (without phase), or None if not known."""
    return OP_REMEDIES.get((op or "", name)) or REMEDIES.get(name)
