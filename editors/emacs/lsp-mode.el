(with-eval-after-load 'lsp-mode
  (lsp-register-client
   (make-lsp-client :new-connection (lsp-stdio-connection '("perflens" "lsp"))
                    :activation-fn (lsp-activate-on "c" "cpp" "go" "javascript" "python" "rust")
                    :initialization-options '(:source (:file "cpu.pb.gz"))
                    :add-on? t
                    :server-id 'perflens)))
(setq lsp-inlay-hint-enable t)
