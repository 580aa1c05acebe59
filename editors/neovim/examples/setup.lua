require('perflens').setup({
  settings = { source = { file = 'cpu.pb.gz' } },
})
