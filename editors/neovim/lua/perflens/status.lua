-- What is open, in two facts for a status line, and what the server is busy with.

local client = require('perflens.client')

local M = {}

---@type table[] answers of `perflens/status`
local folders = {}
---@type table<string, { client: integer, token: any, text: string }> by client and token
local running = {}

--- The status of the folder that a buffer is in: the innermost one.
function M.of(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local found
  for _, each in ipairs(folders) do
    local is_inside = vim.startswith(file, each.folder .. '/') or file == each.folder
    if is_inside and (not found or #each.folder > #found.folder) then found = each end
  end
  return found or folders[1]
end

local function progress()
  local keys = vim.tbl_keys(running)
  table.sort(keys)
  return keys[1] and running[keys[1]].text
end

---@return string
function M.text(buffer)
  if not client.of(buffer) then return '' end
  local status = M.of(buffer)
  return progress() or (status and status.text) or ''
end

--- Asks again; `done` gets the status of the current buffer.
---@param done? fun(status: table?)
function M.refresh(done)
  local buffer = vim.api.nvim_get_current_buf()
  return client.ask('perflens/status', {}, buffer, function(result)
    folders = result or {}
    vim.cmd.redrawstatus()
    if done then done(M.of(buffer)) end
  end)
end

function M.all()
  return folders
end

--- What an `LspProgress` event is about.
function M.on_progress(data)
  local owner = vim.lsp.get_client_by_id(data.client_id)
  local parameters = data.params or data.result
  if not owner or owner.name ~= 'perflens' or not parameters then return end
  local key = ('%d %s'):format(owner.id, parameters.token)
  local value = parameters.value
  if value.kind == 'end' then
    running[key] = nil
    M.refresh()
  else
    local title = value.title or (running[key] and running[key].title) or ''
    local share = value.percentage and ('%d%%'):format(value.percentage)
    local words = vim.tbl_filter(function(word) return word and word ~= '' end, { title, value.message or false, share or false })
    running[key] = { client = owner.id, token = parameters.token, title = title, text = table.concat(words, ' ') }
  end
  vim.cmd.redrawstatus()
end

--- Stops what the server is busy with, as far as it can be stopped.
function M.cancel()
  for key, each in pairs(running) do
    local owner = vim.lsp.get_client_by_id(each.client)
    if owner then client.notify(owner, 'window/workDoneProgress/cancel', { token = each.token }) end
    if not owner then running[key] = nil end
  end
end

return M
