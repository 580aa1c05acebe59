;;; init.el --- The configuration that editors/emacs gives for Eglot alone  -*- lexical-binding: t -*-

;; Modes for Go and Rust are packages of their own, and only their names matter here.
(define-derived-mode rust-mode prog-mode "Rust")
(define-derived-mode go-mode prog-mode "Go")
(add-to-list 'auto-mode-alist '("\\.rs\\'" . rust-mode))
(add-to-list 'auto-mode-alist '("\\.go\\'" . go-mode))

(load (expand-file-name "emacs/eglot-only" (getenv "PERFLENS_EXAMPLES")) nil t)
(setq eglot-sync-connect 20
      make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      inhibit-startup-screen t)
