-- What the scripts for Neovim share: checks, waiting, what is drawn, and what went wrong unseen.

local M = {}

M.expected = vim.json.decode(table.concat(vim.fn.readfile(os.getenv('PERFLENS_EXPECTED')), '\n'))

local version = vim.version()
local title = ('neovim %d.%d'):format(version.major, version.minor)

--- Names what is checked in the lines that are printed.
function M.of(what)
  title = title .. ' ' .. what
end

function M.check(name, ok, detail)
  io.stdout:write(('%s %s: %s%s\n'):format(ok and 'ok' or 'FAILED', title, name, ok and '' or ': ' .. vim.inspect(detail, { newline = ' ', indent = '' })))
end

-- Waits until `actual()` is `wanted`, and says what it was instead.
function M.becomes(name, wanted, actual)
  local last
  local ok = vim.wait(20000, function()
    last = actual()
    return vim.deep_equal(last, wanted)
  end, 20)
  M.check(name, ok, { wanted = wanted, got = last })
  return ok
end

-- What is drawn in the namespaces of a name: { ['13'] = text, … } with the line numbers that people see.
function M.drawn(buffer, pattern)
  vim.cmd('redraw!')
  local found = {}
  for name, id in pairs(vim.api.nvim_get_namespaces()) do
    if name:find(pattern) then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, id, 0, -1, { details = true })) do
        local details = mark[4]
        local chunks = details.virt_text or (details.virt_lines or {})[1] or {}
        local text = vim.iter(chunks):map(function(chunk) return chunk[1] end):join('')
        if text ~= '' and not details.invalid then found[tostring(mark[2] + 1)] = vim.trim(text) end
      end
    end
  end
  return found
end

-- Moves labels as an edit would: lines from `from` on go down by `by`; `gone` loses its label.
function M.moved(labels, from, by, gone)
  local result = {}
  for line, label in pairs(labels) do
    local number = tonumber(line)
    if number ~= gone then result[tostring(number >= from and number + by or number)] = label end
  end
  return result
end

-- Lines of the floating window, when there is one.
function M.popup()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), window
    end
  end
end

-- Whatever went wrong unseen: messages, and errors of the client's log, which has what the server
-- writes to stderr too.
local function complaints()
  local found = {}
  for line in vim.api.nvim_exec2('messages', { output = true }).output:gmatch('[^\n]+') do
    if line:find('Error') or line:find('E%d+:') or line:find('quit with exit code') then found[#found + 1] = line end
  end
  local log = vim.lsp.log and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  for _, line in ipairs(vim.fn.filereadable(log) == 1 and vim.fn.readfile(log) or {}) do
    if line:find('^%[ERROR%]') then found[#found + 1] = line end
  end
  return found
end

-- Ends all clients, and looks for complaints, but for one that another server's end has.
function M.stop_all(allowed)
  local names = vim.iter(vim.lsp.get_clients()):map(function(each) return each.name end):totable()
  for _, each in ipairs(vim.lsp.get_clients()) do
    if vim.fn.has('nvim-0.11') == 0 then each.stop() else each:stop() end
  end
  local stopped = vim.wait(10000, function() return #vim.lsp.get_clients() == 0 end, 20)
  M.check(('clients %s stop'):format(table.concat(names, ' and ')), stopped, #vim.lsp.get_clients())
  local unseen = vim.tbl_filter(function(line) return not (allowed and line:find(allowed)) end, complaints())
  M.check('no error in messages or log', #unseen == 0, unseen)
end

-- Runs all of a script, and leaves Neovim.
function M.run(script)
  local ok, problem = xpcall(script, debug.traceback)
  if ok then io.stdout:write('done\n') else M.check('the script', false, problem) end
  vim.cmd('qa!')
end

return M
