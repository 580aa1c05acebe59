# With kakoune-lsp, in kakrc.
hook global BufSetOption filetype=(c|cpp|go|python|rust) %{
  set-option -add buffer lsp_servers %{
    [perflens]
    root_globs = ["perflens.toml", ".git"]
    command = "perflens"
    args = ["lsp"]
  }
}
lsp-inlay-hints-enable global
lsp-inlay-code-lenses-enable global

define-command perflens-open -params 1 -file-completion -docstring 'perflens-open FILE: show the costs of a profile' %{
  lsp-execute-command perflens.openProfile "[""%arg{1}""]"
}
define-command perflens-next -docstring 'go to the next hot spot' %{
  lsp-execute-command perflens.nextHotspot '[]'
}
