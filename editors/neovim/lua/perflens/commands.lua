-- All commands, one table: what each does when somebody runs it from the command line, a key, the
-- menu or a code action. A command of the server that is not in the table asks for what it needs and
-- is run; one that is has a picker, or a surface of the editor for its answer.

local ask = require('perflens.ask')
local client = require('perflens.client')
local hints = require('perflens.hints')
local hotspots = require('perflens.hotspots')
local schema = require('perflens.schema')
local status = require('perflens.status')
local texts = require('perflens.texts')

local M = {}

local PROFILES = { '%.pb$', '%.pb%.gz$', '%.pprof$', '%.prof$', '%.folded$', '%.collapsed$', '%.speedscope%.json$', '%.cpuprofile$', '%.perf$' }
local MOST_PROFILES = 50
local ELSEWHERE = 'Another file or address…'

-- ---- pickers

--- Lets somebody pick a profile of the workspace, newest first, or name one.
local function pick_profile(prompt, done)
  local running = client.of()
  local root = running and running.config.root_dir or vim.fn.getcwd()
  local found = vim.fs.find(function(name)
    return vim.iter(PROFILES):any(function(pattern) return name:find(pattern) end)
  end, { path = root, type = 'file', limit = MOST_PROFILES })
  local function age(path) return -((vim.uv.fs_stat(path) or { mtime = { sec = 0 } }).mtime.sec) end
  table.sort(found, function(a, b) return age(a) < age(b) end)
  vim.ui.select(vim.list_extend(found, { ELSEWHERE }), {
    prompt = prompt,
    format_item = function(path) return vim.startswith(path, root .. '/') and path:sub(#root + 2) or path end,
  }, function(path)
    if path ~= ELSEWHERE then return path and done(path) end
    vim.ui.input({ prompt = prompt .. ' ', completion = 'file' }, function(typed)
      if typed and typed ~= '' then done(typed:find('^%a[%w+.-]+:/') and typed or vim.fn.fnamemodify(vim.fs.normalize(typed), ':p')) end
    end)
  end)
end

local function open_profile(arguments)
  if arguments.path then return client.execute('openProfile', arguments) end
  pick_profile('Which profile?', function(path) client.execute('openProfile', { path = path }) end)
end

--- What the server knows to compare with, and any other profile; what can't be had says why.
local function compare_with(arguments)
  if arguments.path then return client.execute('compareWith', arguments) end
  local function compare(path) client.execute('compareWith', vim.tbl_extend('force', arguments, { path = path })) end
  client.execute('compareWith', {}, function(offered)
    if type(offered) ~= 'table' then return end
    local items = {}
    for _, choice in ipairs(offered.choices or {}) do
      items[#items + 1] = { title = ('%s  %s'):format(choice.label, choice.profile), run = function() compare(choice.base) end }
    end
    items[#items + 1] = { title = 'Another profile…', run = function() pick_profile('Compare with which profile?', compare) end }
    for _, missing in ipairs(offered.notOffered or {}) do
      items[#items + 1] = {
        title = ('(not %s: %s)'):format(missing.title, missing.why),
        run = function() vim.notify(('perflens: %s.'):format(missing.why)) end,
      }
    end
    vim.ui.select(items, { prompt = 'Compare with what?', format_item = function(item) return item.title end }, function(item)
      if item then item.run() end
    end)
  end)
end

local function select_value_type(arguments)
  if arguments.type then return client.execute('selectValueType', arguments) end
  status.refresh(function(now)
    -- The server says why there is nothing to select.
    if not now or #now.valueTypes == 0 then return client.execute('selectValueType', {}) end
    vim.ui.select(now.valueTypes, {
      prompt = 'Count which value type?',
      format_item = function(each) return each == now.valueType and each .. ' (shown)' or each end,
    }, function(each)
      if each then client.execute('selectValueType', { type = each }) end
    end)
  end)
end

local function add_filter(filters)
  vim.ui.input({ prompt = 'Count only what matches (such as fn~parse, file^src/, thread!=main): ' }, function(text)
    if text and vim.trim(text) ~= '' then
      client.execute('setFilter', { filters = vim.list_extend(vim.list_slice(filters), { vim.trim(text) }) })
    end
  end)
end

--- What the samples can be told apart by, each with what it leaves out; filters that apply can be taken back.
local function set_filter(arguments)
  if arguments.filters then return client.execute('setFilter', arguments) end
  client.execute('setFilter', {}, function(offered)
    if type(offered) ~= 'table' then return end
    local items = { { title = 'Write a filter…', run = function() add_filter(offered.applied or {}) end } }
    for _, choice in ipairs(offered.choices or {}) do
      items[#items + 1] = {
        title = choice.title,
        run = function() client.execute('setFilter', { filters = #choice.filters > 0 and choice.filters or '' }) end,
      }
    end
    vim.ui.select(items, { prompt = 'Count only what?', format_item = function(item) return item.title end }, function(item)
      if item then item.run() end
    end)
  end)
end

local function toggle_hints(arguments)
  if arguments.mode then return hints.set(arguments.mode) end
  hints.set()
end

--- What the server offers for the line of the cursor.
local function show_actions(arguments)
  local here = ask.here()
  local at = { file = arguments.file or here.file, line = tonumber(arguments.line) or here.line, name = arguments.name }
  client.execute('showActions', at, function(offered)
    if type(offered) ~= 'table' then return end
    if #offered.choices == 0 then return vim.notify('perflens: this line has no cost') end
    vim.ui.select(offered.choices, {
      prompt = ('Line %d'):format(offered.line),
      format_item = function(action) return (action.title:gsub('^perflens: ', '')) end,
    }, function(action)
      if action then M.run(action.command:gsub('^perflens%.', ''), (action.arguments or {})[1] or {}) end
    end)
  end)
end

--- Callers and callees in a list; taking one goes there.
local function show_callers(arguments)
  local here = ask.here()
  local of = arguments.of or 'line'
  local file = arguments.file or here.file
  client.ask('perflens/callers', {
    textDocument = { uri = file:find('^file:') and file or vim.uri_from_fname(file) },
    line = (tonumber(arguments.line) or here.line) - 1,
    of = of,
  }, vim.api.nvim_get_current_buf(), function(found)
    local rows = {}
    for _, side in ipairs({ { 'called by', 'callers' }, { 'calls', 'callees' } }) do
      for _, row in ipairs(found and found[side[2]] or {}) do
        rows[#rows + 1] = { title = ('%-9s  %s'):format(side[1], row.label), row = row }
      end
    end
    if #rows == 0 then return vim.notify(('perflens: no samples in this %s'):format(of)) end
    vim.ui.select(rows, { prompt = 'Callers and callees of this ' .. of, format_item = function(each) return each.title end }, function(each)
      if not each then return end
      local uri, line = each.row.uri, each.row.line
      if not uri or uri == vim.NIL then return vim.notify(('perflens: %s is not on this machine'):format(each.row.name)) end
      local start = { line = (line and line ~= vim.NIL and line or 1) - 1, character = 0 }
      vim.lsp.util.show_document({ uri = uri, range = { start = start, ['end'] = start } }, 'utf-16', { focus = true })
    end)
  end)
end

--- What the cursor is in, unless something else is named.
local function profile_test(arguments)
  client.execute('profileTest', arguments.file and arguments or ask.here())
end

--- The same, against its program of before the last edit.
local function profile_in_turns(arguments)
  client.execute('profileInTurns', vim.tbl_extend('keep', arguments, ask.here()))
end

local function show_status()
  local asked = status.refresh(function()
    local lines = {}
    for _, folder in ipairs(status.all()) do
      vim.list_extend(lines, { folder.folder .. (folder.service and ' ' .. folder.service or ''), '  ' .. folder.text })
      for _, detail in ipairs(folder.details) do
        lines[#lines + 1] = '  ' .. detail
      end
    end
    texts.show('status', table.concat(lines, '\n'))
  end)
  if not asked then client.execute('showStatus', {}) end
end

local SCOPES = { selection = 'The selected lines', line = 'This line', ['function'] = 'This function', file = 'This file', workspace = 'The whole workspace', comparison = 'What has changed' }

--- Scopes about a place get the cursor's, or the lines that the command was given.
local function copy_for_ai(arguments, range)
  local function copy(scope)
    local place = (scope == 'workspace' or scope == 'comparison') and {} or ask.here()
    if scope == 'selection' and range then
      place.line, place.endLine = range[1], range[2]
    end
    require('perflens.copy').copy(vim.tbl_extend('keep', { scope = scope }, arguments, place))
  end
  if arguments.scope then return copy(arguments.scope) end
  if range then return copy('selection') end
  local is_comparing = (status.of(vim.api.nvim_get_current_buf()) or {}).state == 'comparing'
  local scopes = is_comparing and { 'line', 'function', 'file', 'workspace', 'comparison' } or { 'line', 'function', 'file', 'workspace' }
  vim.ui.select(scopes, { prompt = 'Copy the costs of what?', format_item = function(scope) return SCOPES[scope] end }, function(scope)
    if scope then copy(scope) end
  end)
end

-- ---- the tables

--- Commands of the server with pickers or surfaces of the editor.
M.OF_SERVER = {
  openProfile = open_profile,
  compareWith = compare_with,
  selectValueType = select_value_type,
  setFilter = set_filter,
  nextHotspot = function(arguments) hotspots.go('nextHotspot', 1, arguments) end,
  previousHotspot = function(arguments) hotspots.go('previousHotspot', 1, arguments) end,
  showHotspots = hotspots.list,
  showActions = show_actions,
  showCallers = show_callers,
  profileTest = profile_test,
  profileInTurns = profile_in_turns,
  explain = function(arguments) client.execute('explain', arguments, texts.show_explanation) end,
  showStatus = show_status,
  toggleHints = toggle_hints,
  copyForAI = copy_for_ai,
}

--- Those that do something with the lines of a visual selection.
M.TAKES_RANGE = { copyForAI = true }

--- Commands that only the plug-in has.
M.OWN = {
  cancel = { title = 'Stop what the server is busy with', run = status.cancel },
  detail = { title = "Details of the cursor's line", run = texts.detail },
  restart = { title = 'Start the server again', run = client.restart },
}

--- The names of all commands, sorted.
---@return string[]
function M.names()
  local names = vim.tbl_keys(M.OWN)
  for _, command in ipairs(schema.commands() or {}) do
    names[#names + 1] = command.name
  end
  table.sort(names)
  return names
end

--- Shows what a command without a surface of its own answers.
local function show_answer(name, answer)
  if type(answer) ~= 'string' or answer == '' then return end
  if answer:find('\n') then
    texts.show(name, answer)
  else
    vim.notify('perflens: ' .. answer)
  end
end

--- The server's description of a command; that there is none is told.
local function described(name)
  local command = schema.command(name)
  if command then return command end
  local _, problem = schema.commands()
  vim.notify('perflens: ' .. (problem or ('there is no command ' .. name)), vim.log.levels.WARN)
end

--- Runs a command as if somebody had called it.
---@param name string
---@param arguments table<string, any>
---@param range [integer, integer]? the lines that it was given, for those in TAKES_RANGE
function M.run(name, arguments, range)
  if M.OWN[name] then return M.OWN[name].run() end
  local command = described(name)
  if not command then return end
  if M.OF_SERVER[name] then return M.OF_SERVER[name](arguments, range) end
  ask.missing(command, arguments, function(complete)
    client.execute(name, complete, function(answer) show_answer(name, answer) end)
  end)
end

local function menu()
  local items = vim.deepcopy(schema.commands() or {})
  for name, own in vim.spairs(M.OWN) do
    items[#items + 1] = { name = name, title = own.title }
  end
  vim.ui.select(items, { prompt = 'perflens', format_item = function(item) return item.title end }, function(item)
    if item then M.run(item.name, {}) end
  end)
end

--- `:Perflens WORD…`
---@param line string what follows the command
---@param range [integer, integer]? lines that stand before it
function M.run_line(line, range)
  -- Without a configuration it works as it comes.
  if not client.is_set_up then require('perflens').setup() end
  local words = ask.words(line)
  local name = words[1]
  if range and not M.TAKES_RANGE[name or ''] then
    return vim.notify(('perflens: %s takes no lines; run it without them'):format(name or 'the menu'), vim.log.levels.WARN)
  end
  if not name then return menu() end
  if M.OWN[name] then return M.OWN[name].run() end
  local command = described(name)
  if not command then return end
  local arguments, problem = ask.read(command, vim.list_slice(words, 2))
  if not arguments then return vim.notify(('perflens: %s: %s'):format(name, problem), vim.log.levels.WARN) end
  M.run(name, arguments, range)
end

--- What can follow on a command line.
---@param lead string
---@param line string up to the cursor
---@return string[]
function M.complete(lead, line)
  local words = vim.split(vim.trim(line:sub(1, #line - #lead)), '%s+')
  if #words == 1 then
    return vim.tbl_filter(function(name) return vim.startswith(name:lower(), lead:lower()) end, M.names())
  end
  local command = schema.command(words[2])
  return command and ask.complete(command, #words - 1, lead) or {}
end

return M
