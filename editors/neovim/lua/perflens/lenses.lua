-- Costs of functions, above them: the server's code lenses. What they offer to do is
-- `:Perflens showActions`.

local client = require('perflens.client')
local config = require('perflens.config')

local M = {}

local namespace = vim.api.nvim_create_namespace('perflens.lenses')

local function draw(buffer, lenses)
  M.clear(buffer)
  local titles = {}
  for _, lens in ipairs(lenses) do
    local line = lens.range.start.line
    local title = lens.command and lens.command.title
    if title then titles[line] = titles[line] and titles[line] .. ' | ' .. title or title end
  end
  for line, title in pairs(titles) do
    local code = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
    if code then
      -- Tabs are as wide as the buffer says.
      local indent = (' '):rep(vim.api.nvim_buf_call(buffer, function() return vim.fn.indent(line + 1) end))
      vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, {
        virt_lines = { { { indent .. title, 'PerflensLens' } } },
        virt_lines_above = true,
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
  if not config.get().lenses then return end
  local version = vim.api.nvim_buf_get_changedtick(buffer)
  client.ask('textDocument/codeLens', { textDocument = vim.lsp.util.make_text_document_params(buffer) }, buffer, function(lenses)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_changedtick(buffer) == version then
      draw(buffer, lenses or {})
    end
  end)
end

return M
