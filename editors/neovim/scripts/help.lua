-- Writes the server's commands into doc/perflens.txt, between the two rules that name them.
--
-- Usage: nvim -l editors/neovim/scripts/help.lua PERFLENS [--check]
--
-- PERFLENS is the program. With --check nothing is written, and a difference is a failure.

local page = vim.fs.normalize(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ':p'))) .. '/doc/perflens.txt')
local FROM, TO = '-- of the server --', '-- of the plug-in --'

local function wrap(text, indent)
  local lines, line = {}, indent
  for word in text:gmatch('%S+') do
    if #line + #word > 77 and line ~= indent then
      lines[#lines + 1] = line
      line = indent
    end
    line = line .. (line == indent and '' or ' ') .. word
  end
  lines[#lines + 1] = line
  return lines
end

local function section(command)
  local words = vim.tbl_map(function(argument)
    return argument.required and ('{%s}'):format(argument.name) or ('[%s]'):format(argument.name)
  end, command.arguments)
  local call = table.concat(vim.list_extend({ ':Perflens', command.name }, words), ' ')
  local tag = ('*:Perflens-%s*'):format(command.name)
  local lines = { call .. (' '):rep(math.max(1, 78 - #call - #tag)) .. tag }
  -- Markdown's code is help's code.
  vim.list_extend(lines, wrap(command.doc, '    '))
  for _, argument in ipairs(command.arguments) do
    vim.list_extend(lines, wrap(('%s: %s'):format(argument.name, argument.doc), '        '))
  end
  lines[#lines + 1] = ''
  return lines
end

local result = vim.system({ arg[1], 'schema', 'commands' }):wait()
assert(result.code == 0, result.stderr)
local before = vim.fn.readfile(page)
local after, is_inside = {}, false
for _, line in ipairs(before) do
  if line == TO then is_inside = false end
  if not is_inside then after[#after + 1] = line end
  if line == FROM then
    is_inside = true
    after[#after + 1] = ''
    for _, command in ipairs(vim.json.decode(result.stdout).commands) do
      vim.list_extend(after, section(command))
    end
  end
end
if vim.deep_equal(before, after) then os.exit(0) end
if arg[2] == '--check' then
  io.stderr:write('doc/perflens.txt is not what the server says; run scripts/help.lua\n')
  os.exit(1)
end
vim.fn.writefile(after, page)
