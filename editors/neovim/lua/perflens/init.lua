-- What users call: `setup` once, and functions for keys and status lines. All of it is described in
-- doc/perflens.txt; the work is done in the modules beside this one, one per surface.

local M = {}

--- Starts perflens for files of the configured types, those that are open already as well.
---@param options? perflens.Options
function M.setup(options)
  require('perflens.config').set(options)
  require('perflens.highlights').setup()
  require('perflens.client').setup()
end

--- For 'statusline' and plug-ins of it: what is open, in two facts. Empty where perflens isn't.
---@return string
function M.statusline()
  return (require('perflens.status').text(vim.api.nvim_get_current_buf()):gsub('%%', '%%%%'))
end

--- Runs a command by its name, as `:Perflens` does. Arguments that are missing are asked for.
---@param name string as `:Perflens` completes it
---@param arguments? table<string, any>
function M.run(name, arguments)
  require('perflens.commands').run(name, arguments or {})
end

return M
