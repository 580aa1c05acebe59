-- Heat of lines: a block in the sign column and the colour of the line number, from `perflens/heat`.
-- The height of the block says without colour what the colour says.

local client = require('perflens.client')
local config = require('perflens.config')

local M = {}

local namespace = vim.api.nvim_create_namespace('perflens.heat')
local BLOCKS = { '▂', '▄', '▆', '█' }
-- Below diagnostics and what marks changes: their signs are about what was done here just now.
local PRIORITY = 5

local function look(row)
  local is_ascii = vim.tbl_get(config.get().settings, 'hints', 'glyphs') == 'ascii'
  if row.isBetter then return is_ascii and '-' or '▼', 'PerflensBetter' end
  local block = is_ascii and tostring(row.level) or BLOCKS[row.level]
  if block and row.level > 0 then return block, 'PerflensHeat' .. row.level end
end

local function draw(buffer, lines)
  M.clear(buffer)
  local options = config.get()
  local count = vim.api.nvim_buf_line_count(buffer)
  for _, row in ipairs(lines) do
    local sign, highlight = look(row)
    if sign and row.line < count then
      vim.api.nvim_buf_set_extmark(buffer, namespace, row.line, 0, {
        sign_text = options.signs and sign or nil,
        sign_hl_group = options.signs and highlight or nil,
        number_hl_group = options.numbers and highlight or nil,
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
  local options = config.get()
  if not options.signs and not options.numbers then return end
  local version = vim.api.nvim_buf_get_changedtick(buffer)
  client.ask('perflens/heat', { textDocument = vim.lsp.util.make_text_document_params(buffer) }, buffer, function(heat)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_changedtick(buffer) == version then
      draw(buffer, heat and heat.lines or {})
    end
  end)
end

return M
