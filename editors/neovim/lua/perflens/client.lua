-- The connection to the server: one for each workspace folder. Starts it, asks it, and tells the
-- surfaces when there may be something else to show. What is shown, and how, is not here.
--
-- Hints and lenses are the server's, but drawn by our modules and not by Neovim's: those can only be
-- switched on for all servers of a buffer at once, draw a new profile only after an edit, and up to
-- 0.11 never hear of new lenses.

local config = require('perflens.config')

local M = {}

local NAME = 'perflens'
-- So long nobody types before positions are asked for again; marks move with their lines meanwhile.
local IDLE_MS = 200
-- Several messages about one change come together.
local TOGETHER_MS = 10
-- In 0.11 the functions of a client became methods.
local HAS_METHODS = vim.fn.has('nvim-0.11') == 1

---@type table<integer, uv.uv_timer_t>
local timers = {}
local group = vim.api.nvim_create_augroup('perflens', {})
-- A client that has ended can't be asked whether it was one of ours.
local ids = {}

local function surfaces()
  return { require('perflens.hints'), require('perflens.lenses'), require('perflens.heat') }
end

local function call(client, method, ...)
  if HAS_METHODS then return client[method](client, ...) end
  return client[method](...)
end

--- The server that a buffer, or else anything, is attached to.
---@return vim.lsp.Client?
function M.of(buffer)
  local function find(filter)
    for _, client in ipairs(vim.lsp.get_clients(filter)) do
      if client.initialized and not call(client, 'is_stopped') then return client end
    end
  end
  return find({ name = NAME, bufnr = buffer or vim.api.nvim_get_current_buf() }) or find({ name = NAME })
end

--- Asks the server about a buffer; an error is an answer without a result. Says whether it could ask.
---@param method string
---@param parameters table
---@param buffer integer
---@param done fun(result: any, error: table?)
---@return boolean
function M.ask(method, parameters, buffer, done)
  local client = M.of(buffer)
  if not client then return false end
  -- What has none is an object for the server, and a list for Lua.
  if next(parameters) == nil then parameters = vim.empty_dict() end
  local attached = vim.lsp.buf_is_attached(buffer, client.id) and buffer or nil
  return (call(client, 'request', method, parameters, function(error, result)
    if result == vim.NIL then result = nil end
    done(result, error)
  end, attached))
end

--- Runs a command of the server. What goes wrong the server says itself.
---@param name string without prefix
---@param arguments table<string, any>
---@param done? fun(result: any)
function M.execute(name, arguments, done)
  local parameters = { command = 'perflens.' .. name, arguments = next(arguments) and { arguments } or {} }
  local asked = M.ask('workspace/executeCommand', parameters, vim.api.nvim_get_current_buf(), function(result, error)
    if not error and done then done(result) end
  end)
  if not asked then vim.notify('perflens: the server is not running; see :checkhealth perflens', vim.log.levels.WARN) end
end

--- Tells the server something.
function M.notify(client, method, parameters)
  call(client, 'notify', method, parameters)
end

--- Whether the server that runs has this command; `nil` when none runs.
---@return boolean?
function M.has(name)
  local client = M.of()
  local provider = client and client.server_capabilities.executeCommandProvider
  return provider and vim.tbl_contains(provider.commands, 'perflens.' .. name)
end

---@return integer[]
function M.buffers(client)
  return vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.tbl_keys(client.attached_buffers))
end

-- ---- telling surfaces

--- Lets the surfaces of a buffer show what is so, a moment later.
---@param buffer integer
---@param wait? integer milliseconds
function M.refresh(buffer, wait)
  local timer = timers[buffer]
  if not timer then
    timer = assert(vim.uv.new_timer())
    timers[buffer] = timer
  end
  timer:start(wait or TOGETHER_MS, 0, function()
    vim.schedule(function()
      if not timers[buffer] or not vim.api.nvim_buf_is_loaded(buffer) then return end
      for _, surface in ipairs(surfaces()) do
        surface.refresh(buffer)
      end
    end)
  end)
end

local function refresh_all(client)
  for _, buffer in ipairs(M.buffers(client)) do
    M.refresh(buffer)
  end
  require('perflens.status').refresh()
end

local function forget(buffer)
  local timer = timers[buffer]
  timers[buffer] = nil
  if timer then timer:close() end
  if not vim.api.nvim_buf_is_loaded(buffer) then return end
  for _, surface in ipairs(surfaces()) do
    surface.clear(buffer)
  end
end

-- ---- starting

local function capabilities()
  return vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), {
    -- What docs/lsp-extensions.md calls what a client does itself.
    experimental = { perflens = { followsChanges = true, showsAnswers = true } },
    workspace = { inlayHint = { refreshSupport = true }, codeLens = { refreshSupport = true } },
  })
end

local function on_changes(_, _, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if client then refresh_all(client) end
  return vim.NIL
end

local handlers = {
  ['perflens/changed'] = on_changes,
  ['workspace/inlayHint/refresh'] = on_changes,
  ['workspace/codeLens/refresh'] = on_changes,
}

local function on_init(client)
  ids[client.id] = true
  local can = client.server_capabilities
  -- Ours to draw: see above.
  can.inlayHintProvider = nil
  can.codeLensProvider = nil
  -- Code actions of the server lead to our ways of showing things.
  for _, id in ipairs((can.executeCommandProvider or {}).commands or {}) do
    client.commands[id] = function(command)
      local arguments = (command.arguments or {})[1]
      require('perflens.commands').run(id:gsub('^perflens%.', ''), type(arguments) == 'table' and arguments or {})
    end
  end
end

local function map_keys(buffer)
  local keys = config.get().keys
  if not keys then return end
  for name, key in pairs({ nextHotspot = keys.next, previousHotspot = keys.previous }) do
    local is_free = vim.api.nvim_buf_call(buffer, function() return vim.fn.maparg(key, 'n') == '' end)
    if key ~= '' and is_free then
      vim.keymap.set('n', key, function() require('perflens.hotspots').go(name, vim.v.count1) end, { buffer = buffer, desc = 'perflens: ' .. name })
    end
  end
end

local function on_attach(client, buffer)
  map_keys(buffer)
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function()
      -- Gone, or attached again by somebody else: true ends this.
      if not timers[buffer] or not vim.lsp.buf_is_attached(buffer, client.id) then return true end
      M.refresh(buffer, IDLE_MS)
    end,
    on_reload = function() M.refresh(buffer) end,
  })
  M.refresh(buffer)
  require('perflens.status').refresh()
end

--- Starts the server for a buffer, or attaches the one that its folder has.
---@param buffer integer
function M.start(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  -- Not for what other plug-ins show under a file type: diffs of commits, archives, help.
  if name == '' or name:find('^%a[%w+.-]+://') or vim.bo[buffer].buftype ~= '' then return end
  local options = config.get()
  local settings = next(options.settings) and options.settings or vim.empty_dict()
  vim.lsp.start({
    name = NAME,
    cmd = options.cmd,
    root_dir = vim.fs.root(buffer, options.root_markers) or vim.fs.dirname(name),
    capabilities = capabilities(),
    handlers = handlers,
    init_options = settings,
    settings = { perflens = settings },
    on_init = on_init,
    on_attach = on_attach,
  }, { bufnr = buffer })
end

local function start_open()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.tbl_contains(config.get().filetypes, vim.bo[buffer].filetype) then
      M.start(buffer)
    end
  end
end

local function autocmd(events, pattern, callback)
  vim.api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
end

function M.setup()
  M.is_set_up = true
  vim.api.nvim_clear_autocmds({ group = group })
  autocmd('FileType', config.get().filetypes, function(event) M.start(event.buf) end)
  autocmd('LspDetach', nil, function(event)
    if ids[event.data.client_id] then forget(event.buf) end
  end)
  autocmd('LspProgress', nil, function(event) require('perflens.status').on_progress(event.data) end)
  autocmd({ 'CursorMoved', 'CursorMovedI' }, nil, function(event) require('perflens.hints').on_move(event.buf) end)
  autocmd('ColorScheme', nil, function() require('perflens.highlights').setup() end)
  autocmd('OptionSet', 'background', function() require('perflens.highlights').setup() end)
  require('perflens.hints').reset()
  start_open()
end

--- Ends the servers and starts them again, as after an update.
function M.restart()
  local clients = vim.lsp.get_clients({ name = NAME })
  for _, client in ipairs(clients) do
    call(client, 'stop')
  end
  local tries = 0
  local function begin()
    tries = tries + 1
    if #vim.lsp.get_clients({ name = NAME }) > 0 and tries < 100 then return vim.defer_fn(begin, 50) end
    start_open()
  end
  begin()
end

return M
