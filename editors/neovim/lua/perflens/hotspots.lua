-- The list of hot spots in the quickfix window, and going from one to the next.

local client = require('perflens.client')
local status = require('perflens.status')

local M = {}

--- Goes to a hot spot, `count` times.
---@param name 'nextHotspot'|'previousHotspot'
---@param count integer
---@param arguments? table<string, any>
function M.go(name, count, arguments)
  client.execute(name, arguments or {}, function(spot)
    if count > 1 then return M.go(name, count - 1) end
    -- The server has the editor show the place.
    if type(spot) == 'table' and spot.label then vim.api.nvim_echo({ { spot.label } }, false, {}) end
  end)
end

--- A row for the quickfix window, instead of `file|line| text`.
function M.format(request)
  local items = vim.fn.getqflist({ id = request.id, items = 0 }).items
  local rows = {}
  for at = request.start_idx, request.end_idx do
    rows[#rows + 1] = items[at].text
  end
  return rows
end

local function title_of(by, found)
  local rows = by == 'function' and 'functions' or 'lines'
  if found and found.state == 'comparing' then return ('Hot spots: %s by how much they changed, %s'):format(rows, found.text) end
  return ('Hot spots: %s here%s'):format(rows, found and ', ' .. found.text or '')
end

--- Lists lines or functions by what they cause.
---@param arguments { by?: 'line'|'function', top?: integer }
function M.list(arguments)
  local buffer = vim.api.nvim_get_current_buf()
  local parameters = { by = arguments.by, top = arguments.top and tonumber(arguments.top) }
  local asked = client.ask('perflens/hotspots', parameters, buffer, function(spots, error)
    if error then return vim.notify('perflens: ' .. error.message, vim.log.levels.WARN) end
    if not spots or #spots == 0 then return client.execute('explain', {}, require('perflens.texts').show_explanation) end
    local items = {}
    for _, spot in ipairs(spots) do
      items[#items + 1] = {
        filename = spot.uri ~= vim.NIL and spot.uri and vim.uri_to_fname(spot.uri) or nil,
        lnum = spot.range.start.line + 1,
        text = spot.label,
      }
    end
    vim.fn.setqflist({}, ' ', {
      title = title_of(arguments.by, status.of(buffer)),
      items = items,
      quickfixtextfunc = "v:lua.require'perflens.hotspots'.format",
    })
    vim.cmd('botright copen')
  end)
  if not asked then client.execute('showHotspots', {}) end
end

return M
