-- A file of lazy.nvim's plugins folder, with `dir` where editors/neovim is.
return {
  dir = '~/src/perflens/editors/neovim',
  name = 'perflens',
  ft = { 'c', 'cpp', 'go', 'java', 'javascript', 'python', 'rust', 'typescript' },
  cmd = 'Perflens',
  opts = {
    settings = { source = { file = 'cpu.pb.gz' } },
  },
}
