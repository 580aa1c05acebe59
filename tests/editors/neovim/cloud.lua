-- Drives the plug-in with a profiling server that wants a sign-in: refused, signed in with a browser, asked by
-- a preset; then the server hangs, goes away, comes back and forgets tokens, while somebody types.
--
-- nvim --headless -u cloud-init.lua -c 'luafile cloud.lua'
--
-- PERFLENS_FAKES is the folder with fake-cloud and fake-browser of the tests. Prints a line per check, and `done`
-- at the end.

local checks = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/checks.lua')
local expected, check, becomes, moved = checks.expected, checks.check, checks.becomes, checks.moved
local fakes = os.getenv('PERFLENS_FAKES')

checks.of('cloud')

-- Far less than a server that hangs is waited for, far more than anything takes that doesn't wait.
local PATIENCE = 20000

-- ---- the cloud

local answers = {}
local cloud = vim.system({ fakes .. '/fake-cloud', 'cpu.pb.gz' }, {
  stdin = true,
  stdout = function(_, data)
    for line in (data or ''):gmatch('[^\n]+') do
      answers[#answers + 1] = line
    end
  end,
})

local function next_answer()
  assert(vim.wait(PATIENCE, function() return #answers > 0 end, 10), 'the cloud does not answer')
  return table.remove(answers, 1)
end

local function tell(command)
  cloud:write(command .. '\n')
  return next_answer()
end

local function calls(method)
  local _, count = (' ' .. tell('calls')):gsub('%f[%w]' .. method .. ' ', '')
  return count
end

-- ---- what is shown and said

-- Messages of the server are shown by Neovim itself.
local shown = {}
local show_message = vim.lsp.handlers['window/showMessage']
vim.lsp.handlers['window/showMessage'] = function(error, message, ...)
  shown[#shown + 1] = message.message
  return show_message(error, { type = 4, message = message.message }, ...)
end
vim.notify = function(text) shown[#shown + 1] = text end

local function says(name, pattern)
  local all
  local ok = vim.wait(PATIENCE, function()
    all = table.concat(shown, '\n')
    return all:find(pattern) ~= nil
  end, 20)
  check(name, ok, all)
  shown = {}
end

-- The choice of somebody who looks for a text; other questions are declined.
local wanted
local function chosen(texts)
  for position, text in ipairs(texts) do
    if wanted and text:find(wanted) then
      wanted = nil
      return position
    end
  end
end
vim.ui.select = function(items, options, choose)
  -- Some give two values.
  local function in_words(item) return ((options.format_item or tostring)(item)) end
  local position = chosen(vim.iter(items):map(in_words):totable())
  choose(position and items[position], position)
end
vim.fn.inputlist = function(texts) return (chosen(vim.list_slice(texts, 2))) or 0 end
vim.fn.confirm = function(_, texts) return chosen(vim.split(texts, '\n')) or 0 end

local buffer
local function hints() return checks.drawn(buffer, '^perflens%.hints$') end

-- Types a line above everything that costs, a letter at a time, and takes it back: hints move at once, and the
-- server answers, whatever it waits for itself.
local function types(name)
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '' })
  for _, letter in ipairs(vim.split('// typed meanwhile', '')) do
    local text = vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1]
    vim.api.nvim_buf_set_text(buffer, 0, #text, 0, #text, { letter })
    vim.cmd('redraw!')
    vim.wait(5)
  end
  becomes('hints follow typing ' .. name, moved(expected.before, 0, 1), hints)
  local at = { textDocument = { uri = vim.uri_from_bufnr(buffer) }, position = { line = 15, character = 4 } }
  local answer = vim.lsp.buf_request_sync(buffer, 'textDocument/hover', at, PATIENCE) or {}
  local _, first = next(answer)
  local contents = first and first.result and first.result.contents.value or ''
  check('and it answers ' .. name, contents:find('600ms') ~= nil, answer)
  vim.api.nvim_buf_set_lines(buffer, 0, 1, false, {})
  becomes('hints are back ' .. name, expected.before, hints)
end

local function client() return require('perflens.client').of(buffer) end

checks.run(function()
  vim.opt.lines = 60
  vim.env.BROWSER = fakes .. '/fake-browser'
  -- No secret service: tokens are kept in a file of this run's own.
  vim.env.DBUS_SESSION_BUS_ADDRESS = ''
  local address = next_answer()
  require('perflens').setup({ settings = { source = { address = address, kind = 'polarSignals' } } })
  vim.cmd.edit('src/main.rs')
  buffer = vim.api.nvim_get_current_buf()
  check('the client attaches', vim.wait(PATIENCE, function() return client() ~= nil end, 20), 'no client')

  -- Nothing is asked by itself, and who may not ask is told what to do.
  check('nothing is asked unasked', tell('calls') == 'refreshes=0', 'asked')
  vim.cmd('Perflens query')
  says('without a sign-in it says so', 'wants you to sign in')
  vim.cmd('Perflens signIn')
  says('signed in with a browser', 'signed in to %S+, project shop')

  wanted = 'on%-CPU 15m$'
  vim.cmd('Perflens query')
  assert(becomes('the preset shows its hints', expected.before, hints), 'there is nothing to go on with')
  check('by one query', calls('Query') == 1, tell('calls'))

  -- It hangs.
  tell('hang 1')
  vim.cmd('Perflens refresh')
  check('it is asked again', vim.wait(PATIENCE, function() return calls('Query') == 2 end, 50), tell('calls'))
  types('while the server hangs')
  check('and nobody asked anything else', calls('Query') == 2, tell('calls'))

  -- It goes away in the middle of that.
  shown = {}
  tell('stop')
  says('that it went away is told', "can't be reached")
  types('while the server is away')
  vim.cmd('Perflens refresh')
  says('that it still is', "can't be reached")
  becomes('what was fetched stays', expected.before, hints)

  -- It comes back, and has forgotten tokens.
  tell('start')
  tell('forget')
  shown = {}
  local before = calls('Query')
  vim.cmd('Perflens refresh')
  -- Refused, and once more with the new token.
  check('it is asked when it is back', vim.wait(PATIENCE, function() return calls('Query') == before + 2 end, 50), tell('calls'))
  becomes('with the same hints', expected.before, hints)
  check('a token that is refused is refreshed, once', tell('calls'):find('refreshes=1$') ~= nil, tell('calls'))
  check('and nobody has to sign in again', not table.concat(shown, '\n'):find('sign in'), shown)

  -- A language server that starts while there is none to ask.
  tell('stop')
  vim.cmd('Perflens restart')
  check('it starts without its server', vim.wait(PATIENCE, function() return client() ~= nil and next(hints()) == nil end, 50), hints())
  vim.cmd('Perflens refresh')
  says('and says why there is nothing', "can't be reached")
  tell('start')
  vim.cmd('Perflens refresh')
  becomes('the last query is asked again', expected.before, hints)

  vim.cmd('Perflens signOut')
  says('signed out', 'signed out of')
  vim.cmd('Perflens refresh')
  says('who signed out has to sign in', 'wants you to sign in')
  becomes('and keeps what is shown', expected.before, hints)

  -- An end while something hangs waits for nothing.
  vim.cmd('Perflens signIn')
  says('signed in again', 'signed in to')
  becomes('with the same hints again', expected.before, hints)
  tell('hang 1')
  before = calls('Query')
  vim.cmd('Perflens refresh')
  vim.wait(PATIENCE, function() return calls('Query') > before end, 50)
  checks.stop_all()
  cloud:write(nil)
end)
