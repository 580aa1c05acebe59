-- Costs at the end of lines: the server's inlay hints. Which lines show theirs is the mode; it is
-- about ours alone, whatever hints other servers have.

local client = require('perflens.client')
local config = require('perflens.config')

local M = {}

M.MODES = {
  { name = 'all', title = 'All lines that cost enough' },
  { name = 'hot', title = 'Hot lines only' },
  { name = 'line', title = 'The line of the cursor' },
  { name = 'off', title = 'None' },
}

local namespace = vim.api.nvim_create_namespace('perflens.hints')
-- Before what diagnostics write at the end of a line: a cost belongs to the code.
local PRIORITY = 10

local mode = config.get().mode
-- What was shown before it was switched off.
local before = 'all'
-- The line that was drawn last in each buffer, from 0; only in the mode `line`.
local drawn = {}

function M.mode()
  return mode
end

--- Back to what is configured.
function M.reset()
  mode = config.get().mode
end

--- Shows what a mode says; without one, switches between none and what was shown.
---@param wanted? string
function M.set(wanted)
  wanted = wanted or (mode == 'off' and before or 'off')
  if mode ~= 'off' then before = mode end
  mode = wanted
  for _, each in ipairs(vim.lsp.get_clients({ name = 'perflens' })) do
    for _, buffer in ipairs(client.buffers(each)) do
      client.refresh(buffer)
    end
  end
  -- What is hot the server decides; the rest is decided here.
  client.execute('toggleHints', { mode = wanted == 'line' and 'all' or wanted })
end

local function text_of(label)
  if type(label) == 'string' then return label end
  return vim.iter(label):map(function(part) return part.value end):join('')
end

local function cursor_line(buffer)
  local window = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_buf(window) ~= buffer then window = vim.fn.bufwinid(buffer) end
  return window ~= -1 and vim.api.nvim_win_get_cursor(window)[1] - 1 or nil
end

local function draw(buffer, hints)
  M.clear(buffer)
  local count = vim.api.nvim_buf_line_count(buffer)
  for _, hint in ipairs(hints) do
    local line = hint.position.line
    if line < count then
      vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, {
        virt_text = { { text_of(hint.label), 'PerflensHint' } },
        virt_text_pos = 'eol',
        hl_mode = 'combine',
        priority = PRIORITY,
        invalidate = true,
        undo_restore = false,
      })
    end
  end
end

function M.clear(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
end

function M.refresh(buffer)
  local from, to = 0, vim.api.nvim_buf_line_count(buffer)
  if mode == 'line' then
    from = cursor_line(buffer)
    to = from and from + 1
  end
  drawn[buffer] = from
  if mode == 'off' or not from then return M.clear(buffer) end
  local version = vim.api.nvim_buf_get_changedtick(buffer)
  client.ask('textDocument/inlayHint', {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    range = { start = { line = from, character = 0 }, ['end'] = { line = to, character = 0 } },
  }, buffer, function(hints)
    -- An edit meanwhile has its own question, and so has another line or mode.
    local is_old = not vim.api.nvim_buf_is_loaded(buffer) or vim.api.nvim_buf_get_changedtick(buffer) ~= version
    if is_old or mode == 'off' or drawn[buffer] ~= from then return end
    draw(buffer, vim.tbl_filter(function(hint) return mode ~= 'line' or hint.position.line == from end, hints or {}))
  end)
end

--- The cursor was moved.
function M.on_move(buffer)
  if mode ~= 'line' or drawn[buffer] == nil or drawn[buffer] == cursor_line(buffer) then return end
  M.refresh(buffer)
end

return M
