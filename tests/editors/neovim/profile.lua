-- Drives "profile this" with the plug-in on the project of tests/projects/c, with sums.c open: refused,
-- trusted, profiled, moved, changed, profiled again, compared with what it was before, and run in turns with it.
--
-- nvim --headless -u plugin-init.lua sums.c -c 'luafile profile.lua'

local checks = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/checks.lua')
local check = checks.check
local buffer = vim.api.nvim_get_current_buf()

checks.of('profile this')

local PATIENCE = 60000
local notified = {}
vim.notify = function(text) notified[#notified + 1] = text end

-- Messages of the server are shown by Neovim itself.
local shown = {}
local show_message = vim.lsp.handlers['window/showMessage']
vim.lsp.handlers['window/showMessage'] = function(error, message, ...)
  shown[#shown + 1] = message.message
  return show_message(error, { type = 4, message = message.message }, ...)
end

local function says(pattern)
  local all
  local ok = vim.wait(PATIENCE, function()
    all = table.concat(vim.list_extend(vim.list_slice(shown), notified), '\n')
    return all:find(pattern) ~= nil
  end, 50)
  shown, notified = {}, {}
  return ok, all
end

local function line_of(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if line:find(text, 1, true) then return number end
  end
end

local function at(drawn, text) return drawn[tostring(line_of(text))] or '' end

local function hint_has(name, text, pattern)
  local last
  local ok = vim.wait(PATIENCE, function()
    last = at(checks.drawn(buffer, '^perflens%.hints$'), text)
    return last:find(pattern) ~= nil
  end, 100)
  check(name, ok, last)
end

local function profile()
  vim.api.nvim_win_set_cursor(0, { line_of('test_sums(uint64_t'), 0 })
  vim.cmd('Perflens profileTest')
end

-- Texts of the last list. Questions of the server are declined, and of our own lists what fits is taken.
local offered, wanted
vim.ui.select = function(items, options, choose)
  -- Some give two values.
  local function in_words(item) return ((options.format_item or tostring)(item)) end
  local texts = vim.iter(items):map(in_words):totable()
  if not wanted then return choose(nil) end
  for position, text in ipairs(texts) do
    if text:find(wanted) then
      offered, wanted = texts, nil
      return choose(items[position], position)
    end
  end
  choose(nil)
end

-- Runs a command and takes the entry of its list that fits.
local function taking(pattern, command)
  offered, wanted = nil, pattern
  vim.cmd(command)
  vim.wait(PATIENCE, function() return offered ~= nil end, 20)
  return offered or {}
end
vim.fn.confirm = function() return 1 end
vim.fn.inputlist = function() return 1 end

checks.run(function()
  vim.wait(PATIENCE, function() return #vim.lsp.get_clients() > 0 end, 20)
  local root = vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  profile()
  local ok, all = says('is not trusted')
  check('an untrusted workspace runs nothing', ok, all)

  vim.cmd('Perflens trustWorkspace ' .. root)
  local titles
  ok = vim.wait(PATIENCE, function()
    titles = checks.drawn(buffer, '^perflens%.lenses$')
    return at(titles, 'test_sums(uint64_t'):find('profile this function') ~= nil
  end, 100)
  check('the task has its lens', ok, titles)

  profile()
  ok, all = says('samples in')
  check('it is profiled, without its set-up', ok and all:find('set%-up and left out') ~= nil, all)
  hint_has('the hot line has two thirds', '/* hot */', '6%d%.%d%%')
  hint_has('the steady line has one', '/* steady */', '3%d%.%d%%')

  -- Above, where it moves everything.
  local steady = at(checks.drawn(buffer, '^perflens%.hints$'), '/* steady */')
  local top = line_of('hot(uint64_t rounds) {') - 1
  vim.api.nvim_buf_set_lines(buffer, top, top, false, { '/* Moved', '   by three', '   lines. */' })
  hint_has('a line that moved keeps its cost', '/* steady */', vim.pesc(steady))

  local number = line_of('/* hot */')
  local line = vim.api.nvim_buf_get_lines(buffer, number - 1, number, false)[1]
  vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { (line:gsub('2 %* rounds', '1 * rounds')) })
  vim.cmd('silent write')
  profile()
  ok, all = says('samples in')
  check('and profiled again', ok, all)
  local bases = taking('before my edit', 'Perflens compareWith')
  check('bases are offered, and why others are not', vim.iter(bases):any(function(text) return text:find('not merge%-base') ~= nil end), bases)
  ok, all = says('compared with before my edit: %S+test_sums%.pb%.gz')
  check('the base is named', ok, all)
  hint_has('what became cheaper is marked', '/* hot */', '▼')
  ok = vim.wait(PATIENCE, function()
    titles = checks.drawn(buffer, '^perflens%.lenses$')
    return at(titles, ' hot(uint64_t rounds) {'):find('▼ −%d+%.%dpp ±%d') ~= nil
  end, 100)
  check('its function too, with the interval', ok, titles)
  vim.cmd('Perflens stopComparing')
  hint_has('alone again', '/* hot */', '%d%%')

  local filters = taking('take back', 'Perflens setFilter')
  check('filters that apply can be taken back', vim.iter(filters):any(function(text) return text:find('take back fn') ~= nil end), filters)

  vim.api.nvim_win_set_cursor(0, { line_of('test_sums(uint64_t'), 0 })
  vim.cmd('Perflens profileInTurns {"pairs":2}')
  ok, all = says('2 pairs of runs in turns')
  check('base and new in turns are judged', ok and all:find('improved, −') ~= nil, all)
  hint_has('by all pairs', '/* hot */', '▼')
  checks.stop_all()
end)
