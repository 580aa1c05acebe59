-- Defines `:Perflens` and nothing else: the rest is loaded when it is used, or by `setup()`.

if vim.g.loaded_perflens then return end
vim.g.loaded_perflens = true

vim.api.nvim_create_user_command('Perflens', function(call)
  require('perflens.commands').run_line(call.args, call.range > 0 and { call.line1, call.line2 } or nil)
end, {
  nargs = '*',
  range = true,
  complete = function(lead, line, column) return require('perflens.commands').complete(lead, line:sub(1, column)) end,
  desc = 'Costs of lines: commands of perflens; without arguments a menu',
})
