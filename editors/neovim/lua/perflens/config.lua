-- What users can set. What the server can be set to is not here: that goes through as `settings`.

local M = {}

---@class perflens.Options
---@field cmd? string[] The server and its arguments
---@field filetypes? string[] Where it is started
---@field root_markers? string[] What the workspace folder is known by
---@field settings? table The server's settings: docs/configuration.md
---@field mode? 'all'|'hot'|'line'|'off' Which lines show their cost
---@field lenses? boolean Costs of functions above them
---@field signs? boolean Heat in the sign column
---@field numbers? boolean Heat in line numbers
---@field keys? { next?: string, previous?: string }|false For going to hot spots; never over a mapping of yours
---@field copy? 'auto'|'clipboard'|'osc52'|'buffer' Where a copy for an assistant goes
local defaults = {
  cmd = { 'perflens', 'lsp' },
  filetypes = {
    'c', 'cpp', 'cs', 'cuda', 'dart', 'elixir', 'erlang', 'go', 'haskell', 'java', 'javascript', 'javascriptreact',
    'julia', 'kotlin', 'lua', 'ocaml', 'odin', 'perl', 'php', 'python', 'ruby', 'rust', 'scala', 'swift', 'typescript',
    'typescriptreact', 'zig',
  },
  root_markers = { 'perflens.toml', '.git' },
  settings = {},
  mode = 'all',
  lenses = true,
  signs = true,
  numbers = true,
  keys = { next = ']h', previous = '[h' },
  copy = 'auto',
}

local current = defaults

local CHOICES = { mode = { 'all', 'hot', 'line', 'off' }, copy = { 'auto', 'clipboard', 'osc52', 'buffer' } }

--- What is wrong with options, in words.
---@return string[]
function M.problems(options)
  local problems = {}
  for name, value in pairs(options) do
    local default = defaults[name]
    if default == nil then
      problems[#problems + 1] = ('there is no option `%s`'):format(name)
    elseif type(value) ~= type(default) and not (name == 'keys' and value == false) then
      problems[#problems + 1] = ('`%s` takes a %s, not a %s'):format(name, type(default), type(value))
    elseif CHOICES[name] and not vim.tbl_contains(CHOICES[name], value) then
      problems[#problems + 1] = ('`%s` takes one of %s, not `%s`'):format(name, table.concat(CHOICES[name], ', '), value)
    end
  end
  table.sort(problems)
  return problems
end

--- Options with a mistake are told and left out: the others still count.
---@param options? perflens.Options
function M.set(options)
  options = vim.deepcopy(options or {})
  for _, problem in ipairs(M.problems(options)) do
    vim.notify('perflens: ' .. problem, vim.log.levels.WARN)
    options[problem:match('`(.-)`')] = nil
  end
  -- Lists replace lists; the server's settings are the user's, whole.
  current = vim.tbl_extend('force', defaults, options)
  if type(current.keys) == 'table' then current.keys = vim.tbl_extend('force', defaults.keys, current.keys) end
end

---@return perflens.Options
function M.get()
  return current
end

return M
