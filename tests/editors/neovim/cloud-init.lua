-- The plug-in, as a package manager puts it on the path; the script sets it up once there is a server to name.
--
-- PERFLENS_EXAMPLES is the folder `editors`.
vim.opt.swapfile = false
vim.opt.number = true
vim.opt.runtimepath:prepend(os.getenv('PERFLENS_EXAMPLES') .. '/neovim')
