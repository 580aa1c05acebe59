-- The server's own table of its commands: names, titles, arguments. It comes from the program that
-- is configured, so a newer server has its commands here without a newer plug-in.

local config = require('perflens.config')

local M = {}

local TIMEOUT_MS = 5000

---@class perflens.Argument
---@field name string
---@field takes string|table
---@field required boolean
---@field doc string
---@field example string

---@class perflens.Command
---@field name string
---@field title string
---@field doc string
---@field arguments perflens.Argument[]

local known = {}

--- All commands, or why they can't be told.
---@return perflens.Command[]?, string?
function M.commands()
  local program = config.get().cmd[1]
  if known[program] then return known[program] end
  local started, process = pcall(vim.system, { program, 'schema', 'commands' }, { text = true })
  if not started then return nil, ('there is no program `%s`'):format(program) end
  local result = process:wait(TIMEOUT_MS)
  local is_json, schema = pcall(vim.json.decode, result.stdout or '')
  if result.code ~= 0 or not is_json or type(schema) ~= 'table' or not schema.commands then
    return nil, ('`%s schema commands` does not tell commands: %s'):format(program, vim.trim(result.stderr or ''))
  end
  known[program] = schema.commands
  return known[program]
end

---@return perflens.Command?
function M.command(name)
  for _, command in ipairs(M.commands() or {}) do
    if command.name == name then return command end
  end
end

return M
