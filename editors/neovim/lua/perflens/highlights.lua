-- Colours, by 'background'. A colour scheme or the user may define these groups; theirs count.

local M = {}

local HEAT = {
  dark = {
    { fg = '#75693a', ctermfg = 101 },
    { fg = '#a87d30', ctermfg = 137 },
    { fg = '#dd7d3c', ctermfg = 173, bold = true },
    { fg = '#ff7b72', ctermfg = 210, bold = true },
    better = { fg = '#3fb9a0', ctermfg = 73 },
  },
  light = {
    { fg = '#d0b24e', ctermfg = 179 },
    { fg = '#cf8410', ctermfg = 172 },
    { fg = '#cf560a', ctermfg = 166, bold = true },
    { fg = '#b01020', ctermfg = 124, bold = true },
    better = { fg = '#0f7b6c', ctermfg = 30 },
  },
}

--- What was set here, to tell it from what others set.
local ours = {}

local function define(name, look)
  local now = vim.api.nvim_get_hl(0, { name = name })
  if next(now) ~= nil and not vim.deep_equal(now, ours[name]) then return end
  vim.api.nvim_set_hl(0, name, look)
  ours[name] = vim.api.nvim_get_hl(0, { name = name })
end

function M.setup()
  local heat = HEAT[vim.o.background] or HEAT.dark
  for level = 1, 4 do
    define('PerflensHeat' .. level, heat[level])
  end
  define('PerflensBetter', heat.better)
  define('PerflensHint', { link = 'LspInlayHint' })
  define('PerflensLens', { link = 'LspCodeLens' })
end

return M
