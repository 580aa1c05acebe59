;;; checks.el --- What the scripts for Emacs share  -*- lexical-binding: t -*-

(require 'eglot)
(require 'json)

(defvar expected
  (with-temp-buffer
    (insert-file-contents (getenv "PERFLENS_EXPECTED"))
    (json-parse-buffer :object-type 'alist)))

(defun say (format &rest arguments)
  (princ (apply #'format format arguments)))

(defun check (name ok &optional detail)
  (say "%s emacs %d: %s%s\n" (if ok "ok" "FAILED") emacs-major-version name
       (if ok "" (replace-regexp-in-string "\n" " " (format ": %S" detail))))
  ok)

(defun wait (condition)
  "Wait until CONDITION returns non-nil; return that, or nil after 20 s."
  (let ((deadline (+ (float-time) 20)) got)
    (while (not (or (setq got (funcall condition)) (> (float-time) deadline)))
      (accept-process-output nil 0.05)
      (sit-for 0.02))
    got))

;;; checks.el ends here
