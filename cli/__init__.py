"""The command `mindtorch-npu`: asks the libraries, renders their answers, owns exit codes."""
