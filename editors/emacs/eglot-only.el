(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((c-mode c-ts-mode go-mode go-ts-mode js-mode python-mode rust-mode rust-ts-mode)
                 . ("perflens" "lsp" :initializationOptions (:source (:file "cpu.pb.gz"))))))
(add-hook 'eglot-managed-mode-hook #'eglot-inlay-hints-mode)
