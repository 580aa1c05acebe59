-- The plug-in beside gopls, both on one buffer: what each shows, while text is edited and formatted.
--
-- nvim --headless -u plugin-init.lua ../demo/logstats.go -c 'luafile beside.lua'
--
-- gopls and go are on PATH. Prints a line per check, and `done` at the end.

local checks = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/checks.lua')
checks.of('beside gopls')
local check, becomes = checks.check, checks.becomes
local client = require('perflens.client')
local buffer = vim.api.nvim_get_current_buf()
local EDITS = 20

local function costs() return checks.drawn(buffer, 'perflens%.hints') end
local function theirs() return checks.drawn(buffer, 'inlayhint') end

local function count(map) return vim.tbl_count(map) end

local function settled(read)
  local last, since
  vim.wait(60000, function()
    local now = read()
    if not vim.deep_equal(now, last) then
      last, since = now, vim.uv.now()
    end
    return next(now) ~= nil and vim.uv.now() - since > 1500
  end, 100)
  return last or {}
end

--- What all servers say about a place, by their names.
local function hovers(line, column)
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) }, position = { line = line - 1, character = column } }
  local answers = vim.lsp.buf_request_sync(buffer, 'textDocument/hover', params, 20000) or {}
  local found = {}
  for id, answer in pairs(answers) do
    local contents = (answer.result or {}).contents
    if contents then found[vim.lsp.get_client_by_id(id).name] = contents.value or vim.inspect(contents) end
  end
  return found
end

local function start_gopls()
  vim.lsp.start({
    name = 'gopls',
    cmd = { 'gopls' },
    root_dir = vim.fs.dirname(vim.api.nvim_buf_get_name(buffer)),
    settings = { gopls = { hints = { assignVariableTypes = true, parameterNames = true, rangeVariableTypes = true } } },
  })
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
end

local function text() return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') end

local function format()
  vim.lsp.buf.format({ bufnr = buffer, timeout_ms = 20000, filter = function(each) return each.name == 'gopls' end })
end

checks.run(function()
  -- Lines out of sight aren't drawn.
  vim.opt.lines = 200
  vim.opt.columns = 160
  check('perflens attaches', vim.wait(20000, function() return client.of(buffer) ~= nil end, 20), 'no client')
  local before = settled(costs)
  check('costs are there', count(before) >= 5, before)
  start_gopls()
  local hints = settled(theirs)
  check('hints of gopls beside them', count(hints) >= 3, hints)
  becomes('and the costs stay', before, costs)

  local hot = vim.iter(before):map(function(line) return tonumber(line) end):totable()
  table.sort(hot)
  -- A name on a line with a cost: gopls knows what it is, perflens what it costs.
  local both
  for _, line in ipairs(hot) do
    for column in vim.api.nvim_buf_get_lines(buffer, line - 1, line, false)[1]:gmatch('()%f[%w_][%a_]') do
      local found = hovers(line, column - 1)
      if found.gopls and found.perflens then both = both or found end
    end
    if both then break end
  end
  check('hovers of both', both and both.perflens:find('with calls') and both.gopls:find('```go'), both)

  vim.cmd('Perflens toggleHints off')
  becomes('ours off', {}, costs)
  becomes("leaves gopls's", hints, theirs)
  vim.cmd('Perflens toggleHints all')
  becomes('and on again', before, costs)
  vim.lsp.inlay_hint.enable(false, { bufnr = buffer })
  becomes("gopls's off", {}, theirs)
  becomes('leaves ours', before, costs)
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  becomes("and gopls's on again", hints, theirs)

  local original = text()
  for edit = 1, EDITS do
    local line = hot[edit % #hot + 1]
    local indent = vim.api.nvim_buf_get_lines(buffer, line - 1, line, false)[1]:match('^%s*')
    vim.api.nvim_buf_set_lines(buffer, line - 1, line - 1, false, { indent .. '// 🔥 ' .. edit })
    if edit % 4 == 0 then
      vim.wait(120)
      vim.cmd('redraw!')
    end
  end
  becomes('after edits as many costs as before', count(before), function() return count(costs()) end)
  for _ = 1, EDITS do
    vim.cmd('silent undo')
  end
  check('undone', text() == original, text())
  becomes('the costs are where they were', before, costs)
  becomes("and gopls's hints", hints, theirs)

  -- Badly set lines, which gopls puts right.
  local bad = vim.split(original:gsub('\n\t', '\n  \t '), '\n')
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, bad)
  format()
  check('gopls formats', text() == original, text():sub(1, 300))
  becomes('the costs after that', before, costs)
  -- Whether the last line of a screen counts as seen changes with a new text.
  becomes('the hints after that', {}, function()
    local now = theirs()
    return vim.iter(hints):filter(function(line, label) return now[line] ~= label end):totable()
  end)
  check('both still answer', next(hovers(hot[1], 2)) ~= nil and client.of(buffer) ~= nil, 'no answer')
  -- gopls goes on for a moment with what it was at.
  checks.stop_all('session is shut down')
end)
