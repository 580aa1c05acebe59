-- The plug-in, as a package manager puts it on the path, with the lines that editors/neovim gives.
--
-- PERFLENS_EXAMPLES is the folder `editors`.
local plugin = os.getenv('PERFLENS_EXAMPLES') .. '/neovim'
vim.opt.swapfile = false
vim.opt.number = true
vim.opt.runtimepath:prepend(plugin)
dofile(plugin .. '/examples/setup.lua')
