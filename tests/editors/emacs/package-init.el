;;; package-init.el --- The package, as editors/emacs says to set it up  -*- lexical-binding: t -*-

(define-derived-mode rust-mode prog-mode "Rust")
(define-derived-mode go-mode prog-mode "Go")
(add-to-list 'auto-mode-alist '("\\.go\\'" . go-mode))
(add-to-list 'auto-mode-alist '("\\.rs\\'" . rust-mode))
(add-to-list 'load-path (expand-file-name "emacs" (getenv "PERFLENS_EXAMPLES")))
(load (expand-file-name "emacs/setup" (getenv "PERFLENS_EXAMPLES")) nil t)
(setq eglot-sync-connect 20
      make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      inhibit-startup-screen t)
