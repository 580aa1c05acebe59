-- Texts of the server: a float for the line under the cursor, a scratch buffer for longer ones.

local client = require('perflens.client')

local M = {}

--- A scratch buffer with a text, in a window of its own; an older text of that name is replaced.
---@param name string
---@param text string
---@param filetype? string
---@return integer buffer
function M.show(name, text, filetype)
  local full = 'perflens://' .. name
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(full, '[]*?{},') .. '$')
  if buffer == -1 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, full)
    vim.bo[buffer].bufhidden = 'wipe'
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true, desc = 'close' })
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(vim.trim(text), '\n', { plain = true }))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  if filetype then vim.bo[buffer].filetype = filetype end
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
  else
    local height = math.min(vim.api.nvim_buf_line_count(buffer), 20)
    vim.cmd(('botright %dsplit'):format(math.max(height, 3)))
    vim.api.nvim_win_set_buf(0, buffer)
    vim.wo.wrap, vim.wo.linebreak, vim.wo.number, vim.wo.signcolumn = true, true, false, 'no'
  end
  return buffer
end

function M.show_explanation(text)
  if type(text) == 'string' then M.show('explanation', text) end
end

--- Details of the line under the cursor, in a float; called again, the cursor goes into it.
function M.detail()
  local buffer = vim.api.nvim_get_current_buf()
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local column = vim.fn.indent(line + 1)
  local parameters = {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    -- The cost is the line's, wherever on it the cursor is.
    position = { line = line, character = math.max(0, math.min(column, #vim.api.nvim_get_current_line() - 1)) },
  }
  local asked = client.ask('textDocument/hover', parameters, buffer, function(hover)
    if vim.api.nvim_get_current_buf() ~= buffer then return end
    if not hover then return vim.notify('perflens: this line has no cost') end
    local lines = vim.lsp.util.convert_input_to_markdown_lines(hover.contents)
    vim.lsp.util.open_floating_preview(lines, 'markdown', { focus_id = 'perflens.detail' })
  end)
  if not asked then client.execute('showStatus', {}) end
end

return M
