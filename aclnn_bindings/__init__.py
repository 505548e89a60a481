"""Typed bindings to Ascend's ACL and ACLNN libraries, made from their headers."""
