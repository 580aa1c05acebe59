-- `:checkhealth perflens`: what is here, what is open, and what to do about the rest.

local client = require('perflens.client')
local config = require('perflens.config')
local schema = require('perflens.schema')
local status = require('perflens.status')

local M = {}

local health = vim.health
-- What of `docs/lsp-extensions.md` this plug-in understands.
local EXTENSIONS = 1
local TIMEOUT_MS = 3000

local function check_program()
  health.start('perflens: the program')
  local cmd = config.get().cmd
  local path = vim.fn.exepath(cmd[1])
  if path == '' then
    return health.error(('there is no program `%s`'):format(cmd[1]), {
      "Install perflens so that it is on Neovim's PATH,",
      "or name it: require('perflens').setup({ cmd = { '/path/to/perflens', 'lsp' } })",
    })
  end
  local result = vim.system({ path, '--version' }, { text = true }):wait(TIMEOUT_MS)
  if result.code ~= 0 then return health.error(('`%s --version` fails: %s'):format(path, result.stderr)) end
  health.ok(('%s: %s'):format(path, vim.trim(result.stdout)))
  local commands, problem = schema.commands()
  if not commands then return health.error(problem or '', { 'Update perflens.' }) end
  health.ok(('%d commands'):format(#commands))
end

local function check_folder(folder)
  local report = folder.state == 'error' and health.error or folder.state == 'none' and health.warn or health.ok
  report(('%s%s: %s'):format(folder.folder, folder.service and ' ' .. folder.service or '', folder.text))
  for _, detail in ipairs(folder.details) do
    health.info(detail)
  end
end

local function check_server()
  health.start('perflens: the server')
  local running = client.of()
  if not running then
    return health.warn('it is not running', {
      ("It starts with a file of the types %s."):format(table.concat(config.get().filetypes, ', ')),
      "Is `require('perflens').setup()` called? What went wrong may be in the file of `:lua =vim.lsp.get_log_path()`.",
    })
  end
  local version = vim.tbl_get(running.server_capabilities, 'experimental', 'perflens', 'version')
  if version == EXTENSIONS then
    health.ok(('it runs in %s'):format(running.config.root_dir))
  else
    health.error(('it speaks version %s of what this plug-in speaks as version %d'):format(version, EXTENSIONS), { 'Update both.' })
  end
  local is_told = false
  status.refresh(function() is_told = true end)
  if not vim.wait(TIMEOUT_MS, function() return is_told end, 10) then return health.error('it does not answer') end
  for _, folder in ipairs(status.all()) do
    check_folder(folder)
  end
end

local function check_editor()
  health.start('perflens: this Neovim')
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok(tostring(vim.version()))
  else
    health.error('Neovim 0.10 or newer is needed')
  end
  local target = require('perflens.copy').target()
  health.info(('copies for an assistant go to %s'):format(({ clipboard = 'the clipboard', osc52 = "the terminal's clipboard (OSC 52)", buffer = 'a scratch buffer' })[target]))
  local options = config.get()
  if options.signs and vim.o.signcolumn == 'no' then health.warn("'signcolumn' is \"no\": heat shows in line numbers only") end
  if options.numbers and not vim.o.number and not vim.o.relativenumber then health.info("'number' is off: heat shows in the sign column only") end
end

function M.check()
  check_program()
  check_server()
  check_editor()
end

return M
