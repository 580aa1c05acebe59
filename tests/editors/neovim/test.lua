-- Drives Neovim on the workspace of tests/editors/workspace, with src/main.rs open.
--
-- nvim --headless -u init.lua src/main.rs -c 'luafile test.lua'
--
-- PERFLENS_EXPECTED is expected.json. Prints a line per check, and `done` at the end.

local checks = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/checks.lua')
local expected, check, becomes, moved, popup = checks.expected, checks.check, checks.becomes, checks.moved, checks.popup
local buffer = vim.api.nvim_get_current_buf()
local is_0_10 = vim.fn.has('nvim-0.11') == 0
local is_0_12 = vim.fn.has('nvim-0.12') == 1

local function attached(name)
  return vim.lsp.get_clients({ bufnr = buffer, name = name })[1]
end

local function text_of(label)
  if type(label) == 'string' then return label end
  return vim.iter(label):map(function(part) return part.value end):join('')
end

-- { ['13'] = label, … } with the line numbers that people see.
local function hints()
  local found = {}
  for _, item in ipairs(vim.lsp.inlay_hint.get({ bufnr = buffer })) do
    found[tostring(item.inlay_hint.position.line + 1)] = text_of(item.inlay_hint.label)
  end
  return found
end

-- What is drawn, which may be something else.
local function drawn(pattern) return checks.drawn(buffer, pattern) end

local function lenses()
  local found = {}
  for _, item in ipairs(is_0_12 and vim.lsp.codelens.get({ bufnr = buffer }) or vim.lsp.codelens.get(buffer)) do
    local lens = item.lens or item
    found[tostring(lens.range.start.line + 1)] = lens.command and lens.command.title or 'unresolved'
  end
  return found
end

local function execute(command, arguments)
  local client = attached('perflens')
  local params = { command = command, arguments = arguments }
  local reply
  local function on_reply(error, result) reply = { error = error, result = result } end
  if is_0_10 then
    client.request('workspace/executeCommand', params, on_reply, buffer)
  else
    client:request('workspace/executeCommand', params, on_reply, buffer)
  end
  vim.wait(20000, function() return reply ~= nil end, 20)
  return reply or { error = 'no answer in 20 s' }
end

-- What the server says to the user.
local said = {}
local show_message = vim.lsp.handlers['window/showMessage']
vim.lsp.handlers['window/showMessage'] = function(error, result, ...)
  said[#said + 1] = result.message
  return show_message(error, result, ...)
end

local function says(pattern)
  return vim.wait(10000, function() return table.concat(said, '\n'):find(pattern) ~= nil end, 20)
end

-- Up to 0.11 nobody tells Neovim about new lenses; the configuration asks again when the cursor rests.
local function rest()
  if not is_0_12 then vim.api.nvim_exec_autocmds('CursorHold', { buffer = buffer }) end
end

local function run()
  -- Lines out of sight aren't drawn.
  vim.opt.lines = 60
  vim.opt.columns = 120
  check('the client attaches', vim.wait(20000, function() return attached('perflens') ~= nil end, 20), 'no client')
  becomes('hints', expected.before, hints)
  becomes('hints are drawn', expected.before, function() return drawn('inlayhint') end)
  becomes('lenses', expected.lenses, lenses)
  becomes('lenses are drawn', expected.lenses, function() return drawn('codelens') end)

  vim.api.nvim_win_set_cursor(0, { 14, 10 })
  vim.lsp.buf.hover()
  vim.wait(20000, function() return popup() ~= nil end, 20)
  local lines, window = popup()
  local hover = table.concat(lines or {}, '\n')
  check('hover', hover:find('50.0%%') and hover:find('1.00s') and hover:find('here'), hover)
  if window then vim.api.nvim_win_close(window, true) end

  local offered
  vim.ui.select = function(items, options, choose)
    offered = vim.iter(items):map(function(item) return (options.format_item or tostring)(item) end):totable()
    choose(items[1], 1)
  end
  vim.lsp.buf.code_action()
  vim.wait(20000, function() return offered ~= nil end, 20)
  check('code actions', offered and #offered > 0, offered)
  check('the first shows the callers of the line', says('words::main'), said)

  local reply = execute('perflens.showStatus', {})
  check('a command', not reply.error, reply)
  check('its answer is to be seen', says('2%.00s'), said)
  if is_0_10 then execute('perflens.nextHotspot', {}) else vim.cmd('normal ]h') end
  local there = vim.wait(10000, function() return vim.api.nvim_win_get_cursor(0)[1] == 22 end, 20)
  check('the next hot spot is the hottest line', there, vim.api.nvim_win_get_cursor(0))
  reply = execute('perflens.noSuchCommand', {})
  check('a command that does not exist is refused', reply.error ~= nil, reply)

  -- Before, on and after lines with costs.
  vim.cmd('normal! 9GOlet _before = "é 🔥";')
  becomes('a line typed above moves the hints', moved(expected.before, 9, 1), hints)
  becomes('and where they are drawn', moved(expected.before, 9, 1), function() return drawn('inlayhint') end)
  vim.cmd('normal! 15GA // changed')
  becomes('a changed line loses its hint', moved(moved(expected.before, 9, 1), 99, 0, 15), hints)
  vim.cmd('normal! Go// after everything')
  vim.cmd('undo 0')
  becomes('after undo they are back', expected.before, hints)
  becomes('and drawn', expected.before, function() return drawn('inlayhint') end)

  local start = vim.uv.hrtime()
  assert(vim.uv.fs_rename('after.pb.gz', 'cpu.pb.gz'))
  if becomes('the profile written again changes the hints', expected.after, hints) then
    local ms = (vim.uv.hrtime() - start) / 1e6
    check(('within 3 s (%d ms)'):format(ms), ms < 3000, ms)
  end
  becomes('and those drawn', expected.after, function() return drawn('inlayhint') end)
  rest()
  becomes('and the lenses', expected['lenses after'], lenses)

  -- A second client on the buffer, as rust-analyzer is beside us: neovim/neovim#36318.
  local client = attached('perflens')
  vim.lsp.start({ name = 'second', cmd = { 'perflens', 'lsp' }, root_dir = client.config.root_dir, init_options = client.config.init_options })
  vim.wait(20000, function() return attached('second') and attached('second').initialized end, 20)
  local twice = #vim.tbl_keys(expected.after) * 2
  local both = vim.wait(20000, function() return #vim.lsp.inlay_hint.get({ bufnr = buffer }) == twice end, 20)
  check('two clients draw both their hints', both, #vim.lsp.inlay_hint.get({ bufnr = buffer }))
  for edit = 1, 50 do
    local line = vim.api.nvim_buf_line_count(buffer)
    if edit % 3 == 0 then
      vim.api.nvim_buf_set_lines(buffer, 13, 14, false, {})
    elseif edit % 3 == 1 then
      vim.api.nvim_buf_set_lines(buffer, edit % line, edit % line, false, { '// 🔥 ' .. edit })
    else
      vim.api.nvim_buf_set_text(buffer, 4, 0, 4, 0, { 'é' })
    end
    vim.cmd('redraw!')
    -- Some edits in one notification, some in one each.
    if edit % 5 == 0 then vim.wait(160) end
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.fn.readfile('src/main.rs'))
  both = vim.wait(20000, function() return #vim.lsp.inlay_hint.get({ bufnr = buffer }) == twice end, 20)
  check('after 50 edits both still do', both, #vim.lsp.inlay_hint.get({ bufnr = buffer }))
  becomes('after 50 edits they are right', expected.after, hints)

  checks.stop_all()
end

checks.run(run)
