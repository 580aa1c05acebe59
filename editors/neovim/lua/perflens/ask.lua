-- Arguments of commands: read from a command line, completed, and asked for one after the other, as
-- the server's table describes them. A new command of the server needs nothing here.

local M = {}

-- What the plug-in takes beside what the server takes.
local MORE = { toggleHints = { mode = { 'line' } } }

--- What an argument can be, where that is a list.
---@return string[]?
local function choices(command, argument)
  if argument.takes == 'flag' then return { 'true', 'false' } end
  local listed = type(argument.takes) == 'table' and argument.takes.choice
  if not listed then return nil end
  return vim.list_extend(vim.list_slice(listed), (MORE[command.name] or {})[argument.name] or {})
end

--- A path as the server understands it: that of the command line is relative to Neovim's folder.
local function absolute(path)
  path = vim.fs.normalize(path)
  if vim.uv.fs_stat(path) then return vim.fn.fnamemodify(path, ':p') end
  return path
end

local PATHS = { path = true, file = true, folder = true }

local function value(argument, word)
  if PATHS[argument.name] and not word:find('^%a[%w+.-]+:/') then return absolute(word) end
  return word
end

--- The words of a command line; spaces in double quotes belong to a word.
---@param line string
---@return string[]
function M.words(line)
  -- An object is one word.
  local name, object = line:match('^%s*(%S+)%s+({.*)$')
  if name then return { name, object } end
  local words, word, is_quoted = {}, nil, false
  for character in line:gmatch('.') do
    if character == '"' then
      is_quoted = not is_quoted
      word = word or ''
    elseif character:find('%s') and not is_quoted then
      words[#words + 1] = word
      word = nil
    else
      word = (word or '') .. character
    end
  end
  words[#words + 1] = word
  return words
end

--- Words of a command line as named arguments; or what is wrong with them.
---@param command perflens.Command
---@param words string[]
---@return table<string, any>?, string?
function M.read(command, words)
  if words[1] and vim.startswith(words[1], '{') then
    local is_json, object = pcall(vim.json.decode, words[1])
    if is_json and type(object) == 'table' then return object end
    return nil, 'this is not a JSON object'
  end
  local given = {}
  for at, argument in ipairs(command.arguments) do
    if argument.takes == 'filters' then
      if words[at] then given[argument.name] = vim.list_slice(words, at) end
      return given
    end
    if words[at] then given[argument.name] = value(argument, words[at]) end
  end
  if #words > #command.arguments then
    local names = vim.iter(command.arguments):map(function(argument) return argument.name end):join(', ')
    return nil, ('it takes %s'):format(names == '' and 'no arguments' or names)
  end
  return given
end

--- What can be typed for an argument.
---@param command perflens.Command
---@param at integer which, from 1
---@param lead string
---@return string[]
function M.complete(command, at, lead)
  local argument = command.arguments[at]
  if not argument then return {} end
  local listed = choices(command, argument)
  if argument.name == 'type' then
    listed = (require('perflens.status').of(vim.api.nvim_get_current_buf()) or {}).valueTypes or {}
  end
  if listed then return vim.tbl_filter(function(each) return vim.startswith(each, lead) end, listed) end
  if argument.name == 'folder' then return vim.fn.getcompletion(lead, 'dir') end
  return PATHS[argument.name] and vim.fn.getcompletion(lead, 'file') or {}
end

--- Asks for an argument; `done` gets none when somebody gave up.
local function ask_one(command, argument, done)
  local listed = choices(command, argument)
  if listed then return vim.ui.select(listed, { prompt = argument.doc }, done) end
  local prompt = ('%s (such as %s): '):format(argument.doc, argument.example)
  vim.ui.input({ prompt = prompt, completion = PATHS[argument.name] and 'file' or nil }, function(text)
    if text and text ~= '' then done(value(argument, text)) end
  end)
end

--- Where the cursor is, for commands about a place.
function M.here()
  return { file = vim.uri_from_bufnr(0), line = vim.api.nvim_win_get_cursor(0)[1] }
end

--- Calls `done` with all that the command can't do without: given, of the cursor, or asked for.
---@param command perflens.Command
---@param given table<string, any>
---@param done fun(arguments: table<string, any>)
function M.missing(command, given, done)
  local here = M.here()
  for _, argument in ipairs(command.arguments) do
    if argument.required and given[argument.name] == nil then
      if here[argument.name] then
        given = vim.tbl_extend('force', given, { [argument.name] = here[argument.name] })
      else
        return ask_one(command, argument, function(answer)
          if answer ~= nil then M.missing(command, vim.tbl_extend('force', given, { [argument.name] = answer }), done) end
        end)
      end
    end
  end
  done(given)
end

return M
