-- Costs as a text for an assistant: the server writes it, this finds a place for it.

local client = require('perflens.client')
local config = require('perflens.config')

local M = {}

--- Where a copy goes when nobody says: the clipboard where there is one, else the terminal's.
---@return 'clipboard'|'osc52'|'buffer'
function M.target()
  local wanted = config.get().copy
  if wanted ~= 'auto' then return wanted end
  if vim.fn.has('clipboard') == 1 and vim.fn['provider#clipboard#Executable']() ~= '' then return 'clipboard' end
  -- A terminal is asked to take it and may refuse without a word, so only where one is likely to take it.
  local is_terminal = vim.iter(vim.api.nvim_list_uis()):any(function(ui) return ui.stdout_tty or ui.stdin_tty end)
  if is_terminal and (vim.env.SSH_TTY or vim.env.TMUX) then return 'osc52' end
  return 'buffer'
end

--- Puts a text where it can be taken from.
---@param text string
function M.put(text)
  local target = M.target()
  local lines = vim.split(text, '\n', { plain = true })
  if target == 'clipboard' then
    vim.fn.setreg('+', text)
    vim.notify('perflens: copied for an assistant')
  elseif target == 'osc52' then
    require('vim.ui.clipboard.osc52').copy('+')(lines)
    vim.notify('perflens: copied for an assistant, by way of the terminal')
  else
    require('perflens.texts').show('for-an-assistant.md', text, 'markdown')
  end
end

--- Asks the server for the text of a scope, and puts it.
---@param arguments table<string, any>
function M.copy(arguments)
  client.execute('copyForAI', arguments, function(answer)
    local text = type(answer) == 'table' and answer.text or answer
    if type(text) == 'string' then M.put(text) end
  end)
end

return M
