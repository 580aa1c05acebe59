-- The configuration that docs/editors.md gives, and nothing else.
--
-- PERFLENS_SNIPPETS is a folder with the blocks of that page.
local snippets = os.getenv('PERFLENS_SNIPPETS')
vim.opt.swapfile = false
dofile(snippets .. (vim.lsp.config and '/neovim' or '/neovim-0.10'))
dofile(snippets .. '/neovim-attach')
if vim.lsp.config then dofile(snippets .. '/neovim-key') end
