-- Drives the plug-in of editors/neovim on the workspace of tests/editors/workspace, with src/main.rs
-- open.
--
-- nvim --headless -u plugin-init.lua src/main.rs -c 'luafile plugin.lua'

local checks = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/checks.lua')
local expected, check, becomes, moved, popup = checks.expected, checks.check, checks.becomes, checks.moved, checks.popup
local buffer = vim.api.nvim_get_current_buf()
local perflens = require('perflens')
local commands = require('perflens.commands')
local client = require('perflens.client')

checks.of('plug-in')

local function hints() return checks.drawn(buffer, '^perflens%.hints$') end
local function lenses() return checks.drawn(buffer, '^perflens%.lenses$') end

-- { ['6'] = '█ PerflensHeat4', … }
local function heat()
  local found = {}
  local id = vim.api.nvim_get_namespaces()['perflens.heat']
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, id, 0, -1, { details = true })) do
    local details = mark[4]
    -- Both say it, or none.
    if details.sign_hl_group == details.number_hl_group and not details.invalid then
      found[tostring(mark[2] + 1)] = vim.trim(details.sign_text) .. ' ' .. details.sign_hl_group
    end
  end
  return found
end

-- What the blocks of labels say, which the server words.
local function heat_of(labels)
  local levels = { ['▂'] = 1, ['▄'] = 2, ['▆'] = 3, ['█'] = 4 }
  local wanted = {}
  for line, label in pairs(labels) do
    local block = label:match('^(%S+) ')
    if levels[block] then wanted[line] = block .. ' PerflensHeat' .. levels[block] end
  end
  return wanted
end

-- Answers of people to lists, one after the other: each `pick` gets the texts and gives a position.
-- Returns the texts of the last list.
local function answering(picks, run)
  if type(picks) == 'function' then picks = { picks } end
  local select, offered, asked = vim.ui.select, nil, 0
  vim.ui.select = function(items, options, choose)
    offered = vim.iter(items):map(options.format_item or tostring):totable()
    asked = asked + 1
    local at = picks[asked](offered)
    choose(items[at], at)
  end
  run()
  local done = vim.wait(20000, function() return asked == #picks end, 20)
  vim.ui.select = select
  return done and offered
end

local function nothing() end

local function position(pattern)
  return function(texts)
    for at, text in ipairs(texts) do
      if text:find(pattern) then return at end
    end
  end
end

local notified = {}
vim.notify = function(text) notified[#notified + 1] = text end
local function says(pattern)
  return vim.wait(10000, function() return table.concat(notified, '\n'):find(pattern) ~= nil end, 20)
end

local function cursor() return vim.api.nvim_win_get_cursor(0)[1] end
local function complete(line) return vim.fn.getcompletion(line, 'cmdline') end

-- ---- a second server, in Lua: hints and hovers of its own

local OTHER = { ['12'] = ': HashMap', ['14'] = ': usize' }

local function other_server(dispatchers)
  local is_closing, last = false, 0
  local answers = {
    initialize = function() return { capabilities = { inlayHintProvider = true, hoverProvider = true, textDocumentSync = 1 } } end,
    ['textDocument/inlayHint'] = function()
      local found = {}
      for number, text in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
        local at = text:find('let length', 1, true) and 'let length' or text:find('let mut groups', 1, true) and 'let mut groups'
        if at then
          local label = at == 'let length' and OTHER['14'] or OTHER['12']
          found[#found + 1] = { position = { line = number - 1, character = select(2, text:find(at, 1, true)) }, label = label }
        end
      end
      return found
    end,
  }
  return {
    request = function(method, _, done)
      local answer = answers[method] and answers[method]() or vim.NIL
      vim.schedule(function() done(nil, answer) end)
      last = last + 1
      return true, last
    end,
    notify = function(method)
      if method == 'exit' then dispatchers.on_exit(0, 15) end
      return true
    end,
    is_closing = function() return is_closing end,
    terminate = function()
      is_closing = true
      dispatchers.on_exit(0, 15)
    end,
  }
end

local function other_hints() return checks.drawn(buffer, 'inlayhint') end

-- ---- the checks, in the order of a first day

local function surfaces()
  check('the client attaches', vim.wait(20000, function() return client.of(buffer) ~= nil end, 20), 'no client')
  becomes('hints', expected.before, hints)
  becomes('functions', expected.lenses, lenses)
  becomes('signs and numbers', heat_of(expected.before), heat)
  check("Neovim's own hints stay as they were", not vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }), 'switched on')
  for _, background in ipairs({ 'light', 'dark' }) do
    vim.o.background = background
    -- Which Neovim does itself once it has started.
    vim.api.nvim_exec_autocmds('OptionSet', { pattern = 'background' })
    local wanted = background == 'dark' and 0xff7b72 or 0xb01020
    becomes('colours on ' .. background, wanted, function() return vim.api.nvim_get_hl(0, { name = 'PerflensHeat4' }).fg end)
  end
end

local function names()
  local schema = vim.json.decode(vim.system({ 'perflens', 'schema', 'commands' }):wait().stdout)
  local wanted = vim.tbl_keys(commands.OWN)
  local is_known = {}
  for _, command in ipairs(schema.commands) do
    wanted[#wanted + 1] = command.name
    is_known[command.name] = true
  end
  table.sort(wanted)
  check('all commands are completed', vim.deep_equal(complete('Perflens '), wanted), complete('Perflens '))
  check('and are listed in the menu', #answering(nothing, function() vim.cmd('Perflens') end) == #wanted, #wanted)
  local taken = vim.tbl_filter(function(name) return is_known[name] end, vim.tbl_keys(commands.OWN))
  check("the plug-in's names are not the server's", #taken == 0, taken)
  local unknown = vim.tbl_filter(function(name) return not is_known[name] end, vim.tbl_keys(commands.OF_SERVER))
  -- A server that is older than this surface says so: see texts().
  unknown = vim.tbl_filter(function(name) return name ~= 'copyForAI' end, unknown)
  check('all that have a surface are commands of the server', #unknown == 0, unknown)
  vim.cmd('Perflens noSuchCommand')
  check('a command that does not exist is told', says('there is no command noSuchCommand'), notified)
  check('part of a name', vim.deep_equal(complete('Perflens showh'), { 'showHotspots' }), complete('Perflens showh'))
  for line, wanted_here in pairs({
    ['Perflens showHotspots '] = { 'line', 'function' },
    ['Perflens toggleHints '] = { 'all', 'hot', 'off', 'line' },
    ['Perflens compareWith x '] = { 'true', 'false' },
    ['Perflens selectValueType '] = { 'samples/count', 'cpu/nanoseconds' },
    ['Perflens openProfile af'] = { 'after.pb.gz' },
    ['Perflens clear '] = {},
  }) do
    table.sort(wanted_here)
    becomes('what follows ' .. vim.trim(line), wanted_here, function()
      local got = complete(line)
      table.sort(got)
      return got
    end)
  end
  local words = require('perflens.ask').words
  check('quoted words', vim.deep_equal(words('record "./app --fast"  10 ""'), { 'record', './app --fast', '10', '' }), words('record "./app --fast"  10 ""'))
end

local function places()
  vim.cmd('Perflens showHotspots')
  check('hot spots come in the quickfix window', vim.wait(20000, function() return vim.bo.buftype == 'quickfix' end, 20), vim.bo.buftype)
  local list = vim.fn.getqflist({ items = 0, title = 0 })
  check('the hottest first, at its line', list.items[1].lnum == 22 and list.items[1].text:find('40%.0%%'), list.items[1])
  check('its title says what is listed', list.title:find('lines here') and list.title:find('cpu'), list.title)
  local row = vim.api.nvim_get_current_line()
  check('rows are those of perflens', row:find('800ms') and row:find('words::measure') and not row:find('|'), row)
  vim.cmd('cclose')
  vim.cmd('Perflens showHotspots function 1')
  check('functions', vim.wait(20000, function() return #vim.fn.getqflist() == 1 and vim.fn.getqflist()[1].text:find('words::group') ~= nil end, 20), vim.fn.getqflist())
  vim.cmd('cclose')

  vim.cmd('normal ]h')
  becomes(']h goes to the hottest line', 22, cursor)
  vim.cmd('normal 2]h')
  becomes('with a count further down', 13, cursor)
  vim.cmd('normal [h')
  becomes('[h goes back', 15, cursor)

  vim.api.nvim_win_set_cursor(0, { 14, 0 })
  vim.cmd('Perflens detail')
  vim.wait(20000, function() return popup() ~= nil end, 20)
  local lines, window = popup()
  local text = table.concat(lines or {}, '\n')
  check('details of the line in a float', text:find('50.0%%') and text:find('with calls') and text:find('words::measure'), text)
  if window then vim.api.nvim_win_close(window, true) end

  local offered = answering(nothing, function() vim.cmd('Perflens showActions') end)
  check('what can be done with a line', position('other value type')(offered or {}), offered)
  offered = answering({ position('callers and callees of this line'), nothing }, function() vim.cmd('Perflens showActions') end)
  check('is done when taken', position('called by.*words::main')(offered or {}), offered)
  vim.api.nvim_win_set_cursor(0, { 22, 0 })
  offered = answering(position('^calls'), function() vim.cmd('Perflens showCallers') end)
  check('callers and callees', position('called by.*words::group')(offered or {}), offered)
  check('those that are elsewhere are told', says('not on this machine'), notified)
  vim.api.nvim_win_set_cursor(0, { 22, 0 })
  answering(position('called by.*words::group'), function() vim.cmd('Perflens showCallers') end)
  becomes('taking a caller goes where it calls', 14, cursor)
end

local function texts()
  for name, pattern in pairs({ explain = '98%% placed', showStatus = '2%.00s' }) do
    vim.cmd('Perflens ' .. name)
    local function text() return vim.bo.buftype == 'nofile' and table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') or '' end
    check(name .. ' has a window', vim.wait(20000, function() return text():find(pattern) ~= nil end, 20), text())
    vim.cmd('normal q')
    check('q closes it', vim.api.nvim_get_current_buf() == buffer, vim.api.nvim_buf_get_name(0))
  end
  becomes('status line', true, function() return perflens.statusline():find('cpu') ~= nil and perflens.statusline():find('2%.00s') ~= nil end)

  require('perflens.copy').put('costs\nof main')
  check('a copy goes to a buffer where there is no clipboard', vim.api.nvim_buf_get_name(0):find('for%-an%-assistant') and vim.api.nvim_buf_get_lines(0, 0, -1, false)[2] == 'of main', vim.api.nvim_buf_get_name(0))
  vim.cmd('normal q')
  local copied
  package.loaded['vim.ui.clipboard.osc52'] = { copy = function() return function(lines) copied = lines end end }
  local options = require('perflens.config').get()
  options.copy = 'osc52'
  require('perflens.copy').put('costs\nof main')
  check('or to the terminal', vim.deep_equal(copied, { 'costs', 'of main' }), copied)
  options.copy = 'buffer'
  if not client.has('copyForAI') then
    vim.cmd('Perflens copyForAI')
    return check('a server without it', says('there is no command copyForAI'), notified)
  end
  local offered = answering(position('This line'), function()
    vim.api.nvim_win_set_cursor(0, { 14, 0 })
    vim.cmd('Perflens copyForAI')
  end)
  check('what can be copied', offered and #offered == 4, offered)
  local function copy() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end
  local is_here = vim.wait(20000, function() return vim.api.nvim_buf_get_name(0):find('for%-an%-assistant') ~= nil end, 20)
  check("the copy is the server's text", is_here and copy():find('50%.0%%') and copy():find('main%.rs'), copy())
  vim.cmd('normal q')
  vim.cmd('13,15Perflens copyForAI')
  becomes('of lines that are selected', true, function() return copy():find('lines 13 to 15, costs in the margin') ~= nil end)
  vim.cmd('normal q')
  vim.cmd('13,15Perflens showStatus')
  check('other commands take no lines', says('showStatus takes no lines'), notified)
end

local function modes()
  vim.api.nvim_win_set_cursor(0, { 14, 0 })
  vim.cmd('Perflens toggleHints off')
  becomes('mode off', {}, hints)
  check('bars stay', next(heat()) ~= nil, heat())
  vim.cmd('Perflens toggleHints line')
  becomes("mode line: the cursor's", { ['14'] = expected.before['14'] }, hints)
  vim.api.nvim_win_set_cursor(0, { 6, 0 })
  vim.api.nvim_exec_autocmds('CursorMoved', { buffer = buffer })
  becomes('and then of another line', { ['6'] = expected.before['6'] }, hints)
  vim.cmd('Perflens toggleHints')
  becomes('toggled off', {}, hints)
  vim.cmd('Perflens toggleHints')
  becomes('and on again, as it was', { ['6'] = expected.before['6'] }, hints)
  vim.cmd('Perflens toggleHints hot')
  becomes('mode hot', moved(expected.before, 99, 0, 7), hints)
  vim.cmd('Perflens toggleHints all')
  becomes('mode all', expected.before, hints)
end

local function queries()
  answering(position('samples'), function() vim.cmd('Perflens selectValueType') end)
  becomes('another value type', true, function() return (hints()['6'] or ''):find('180') ~= nil end)
  vim.cmd('Perflens selectValueType cpu')
  becomes('and back', expected.before, hints)
  vim.cmd('Perflens setFilter fn~measure')
  becomes('a filter', nil, function() return hints()['5'] end)
  local offered = answering(position('take back'), function() vim.cmd('Perflens setFilter') end)
  check('can be taken back', position('fn~measure')(offered or {}), offered)
  becomes('and is', expected.before, hints)
  vim.cmd('Perflens openProfile after.pb.gz')
  becomes('a profile by its name', expected.after, hints)
  answering({ position('Another profile'), position('^cpu%.pb%.gz$') }, function() vim.cmd('Perflens compareWith') end)
  becomes('a comparison marks what is less', '▼ PerflensBetter', function() return heat()['22'] end)
  becomes('with the difference', true, function() return (hints()['22'] or ''):find('▼ −20%.0pp') ~= nil end)
  vim.cmd('Perflens stopComparing')
  becomes('ends', expected.after, hints)
  vim.cmd('Perflens openProfile cpu.pb.gz cpu')
  becomes('back to the first', expected.before, hints)
  vim.cmd('Perflens clear')
  becomes('no profile, no heat', {}, heat)
  answering(position('^cpu%.pb%.gz$'), function() vim.cmd('Perflens openProfile') end)
  becomes('a profile from the list', expected.before, hints)
  vim.cmd('Perflens showHotspots sideways')
  check('so is what the server refuses', says('sideways'), notified)
  vim.cmd('Perflens clear now')
  check('too many words are told', says('it takes no arguments'), notified)
end

local function edits()
  vim.api.nvim_set_current_buf(buffer)
  vim.cmd('normal! 9GOlet _before = "é 🔥";')
  becomes('a line typed above moves hints', moved(expected.before, 9, 1), hints)
  becomes('and heat', heat_of(moved(expected.before, 9, 1)), heat)
  vim.cmd('normal! 15GA // changed')
  becomes('a changed line loses its hint', moved(moved(expected.before, 9, 1), 99, 0, 15), hints)
  vim.cmd('undo 0')
  becomes('after undo they are back', expected.before, hints)

  assert(vim.uv.fs_rename('after.pb.gz', 'cpu.pb.gz'))
  becomes('the profile written again changes hints', expected.after, hints)
  becomes('and functions', expected['lenses after'], lenses)
  becomes('and heat', heat_of(expected.after), heat)
end

local function beside_another()
  vim.lsp.start({ name = 'other', cmd = other_server, root_dir = vim.uv.cwd() })
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  becomes('hints of another server, each once', OTHER, other_hints)
  becomes('beside ours', expected.after, hints)
  vim.cmd('Perflens toggleHints off')
  becomes('ours off', {}, hints)
  becomes("leaves the other's", OTHER, other_hints)
  vim.cmd('Perflens toggleHints all')
  vim.lsp.inlay_hint.enable(false, { bufnr = buffer })
  becomes("the other's off", {}, other_hints)
  becomes('leaves ours', expected.after, hints)
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  for edit = 1, 30 do
    vim.api.nvim_buf_set_lines(buffer, edit % 20, edit % 20, false, { '// 🔥 ' .. edit })
    vim.cmd('redraw!')
    if edit % 5 == 0 then vim.wait(160) end
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.fn.readfile('src/main.rs'))
  becomes('after 30 edits ours are right', expected.after, hints)
  becomes("and the other's", OTHER, other_hints)
end

local function help()
  vim.cmd('checkhealth perflens')
  local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  check('checkhealth', report:find('it runs in') and report:find('commands') and report:find('1%.50s') and not report:find('ERROR'), report)
  vim.cmd('bwipeout')
  local doc = vim.fs.dirname(vim.api.nvim_get_runtime_file('doc/perflens.txt', false)[1])
  local copy = vim.fn.tempname()
  vim.fn.mkdir(copy .. '/doc', 'p')
  vim.uv.fs_copyfile(doc .. '/perflens.txt', copy .. '/doc/perflens.txt')
  vim.opt.runtimepath:append(copy)
  vim.cmd('helptags ' .. copy .. '/doc')
  for _, name in ipairs(vim.list_extend({ 'perflens', ':Perflens', 'perflens-options', 'PerflensHeat1' }, vim.tbl_map(function(name) return ':Perflens-' .. name end, commands.names()))) do
    local ok, problem = pcall(vim.cmd.help, name)
    if not ok or not vim.api.nvim_get_current_line():find('*' .. name .. '*', 1, true) then check('help for ' .. name, false, problem or vim.api.nvim_get_current_line()) end
  end
  check('help for every command', vim.bo.buftype == 'help', vim.bo.buftype)
  vim.cmd('helpclose')

  local problems = require('perflens.config').problems({ mode = 'hto', cmnd = {}, signs = 1, keys = false })
  check('mistakes in options are told', #problems == 3 and problems[1]:find('all, hot, line, off'), problems)
end

checks.run(function()
  vim.opt.lines = 60
  vim.opt.columns = 120
  for _, part in ipairs({ surfaces, names, places, texts, modes, queries, edits, beside_another, help }) do
    part()
  end
  checks.stop_all()
  check('no server, nothing drawn', next(hints()) == nil and next(heat()) == nil and next(lenses()) == nil, hints())
  check('and nothing in the status line', perflens.statusline() == '', perflens.statusline())
end)
