-- The configuration without the plug-in that editors/neovim gives, and nothing else.
--
-- PERFLENS_EXAMPLES is the folder `editors`.
local examples = os.getenv('PERFLENS_EXAMPLES') .. '/neovim/examples'
vim.opt.swapfile = false
dofile(examples .. (vim.lsp.config and '/lsp.lua' or '/lsp-0.10.lua'))
dofile(examples .. '/lsp-draw.lua')
if vim.lsp.config then dofile(examples .. '/lsp-key.lua') end
