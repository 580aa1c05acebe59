vim.api.nvim_create_autocmd('LspAttach', {
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client.name ~= 'perflens' then return end
    local buffer = { bufnr = event.buf }
    vim.lsp.inlay_hint.enable(true, buffer)
    -- Off and on again, since Neovim draws a line once for each version of the text, and a new
    -- profile changes costs without changing the text.
    client.handlers['workspace/inlayHint/refresh'] = function()
      for number in pairs(client.attached_buffers) do
        local attached = { bufnr = number }
        if vim.lsp.inlay_hint.is_enabled(attached) then
          vim.lsp.inlay_hint.enable(false, attached)
          vim.lsp.inlay_hint.enable(true, attached)
        end
      end
      return vim.NIL
    end
    if vim.lsp.codelens.enable then -- 0.12
      vim.lsp.codelens.enable(true, buffer)
    else
      vim.lsp.codelens.refresh(buffer)
      vim.api.nvim_create_autocmd({ 'BufEnter', 'CursorHold', 'InsertLeave' }, {
        buffer = event.buf,
        callback = function() vim.lsp.codelens.refresh(buffer) end,
      })
    end
  end,
})
