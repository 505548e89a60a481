"""torch.utils.data.datapipes.utils: of it, what pipes of files stand on."""
