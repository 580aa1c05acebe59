vim.lsp.config('perflens', {
  cmd = { 'perflens', 'lsp' },
  filetypes = { 'c', 'cpp', 'go', 'java', 'javascript', 'python', 'rust', 'typescript' },
  root_markers = { 'perflens.toml', '.git' },
  init_options = { source = { file = 'cpu.pb.gz' } },
})
vim.lsp.enable('perflens')
