vim.api.nvim_create_autocmd('FileType', {
  pattern = { 'c', 'cpp', 'go', 'java', 'javascript', 'python', 'rust', 'typescript' },
  callback = function(event)
    vim.lsp.start({
      name = 'perflens',
      cmd = { 'perflens', 'lsp' },
      root_dir = vim.fs.root(event.buf, { 'perflens.toml', '.git' }),
      init_options = { source = { file = 'cpu.pb.gz' } },
    })
  end,
})
