vim.keymap.set('n', ']h', function()
  local client = vim.lsp.get_clients({ name = 'perflens' })[1]
  client:exec_cmd({ title = 'next hot spot', command = 'perflens.nextHotspot' })
end)
