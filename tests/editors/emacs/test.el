;;; test.el --- Drives Emacs on the workspace of tests/editors/workspace  -*- lexical-binding: t -*-

;; emacs -Q --batch -l init.el -l test.el, in the workspace.
;;
;; PERFLENS_EXPECTED is expected.json.  Prints a line per check, and `done' at the end.

(load (expand-file-name "checks" (file-name-directory load-file-name)) nil t)

(defun hints ()
  "Hints that Emacs would draw: an alist from lines to texts."
  ;; Batch mode is never idle and has no display, which would send edits and ask for hints.
  (eglot--signal-textDocument/didChange)
  (eglot--update-hints-1 (point-min) (point-max))
  (accept-process-output nil 0.1)
  (let (found)
    (dolist (overlay (overlays-in (point-min) (point-max)))
      (when (overlay-get overlay 'eglot--inlay-hint)
        (push (cons (line-number-at-pos (overlay-start overlay))
                    (string-trim (substring-no-properties
                                  (concat (overlay-get overlay 'before-string)
                                          (overlay-get overlay 'after-string)))))
              found)))
    (sort found (lambda (a b) (< (car a) (car b))))))

(defun labels (key &optional from gone)
  "Those of KEY in expected.json, one line down after line FROM, without line GONE."
  (delq nil
        (mapcar (lambda (pair)
                  (let ((line (string-to-number (symbol-name (car pair)))))
                    (unless (eql line gone)
                      (cons (if (and from (>= line from)) (1+ line) line) (cdr pair)))))
                (alist-get key expected))))

(defun becomes (name wanted)
  (let (got)
    (check name (wait (lambda () (equal (setq got (hints)) wanted))) (list :wanted wanted :got got))))

(defun says (name pattern)
  "Check that the server shows a message with PATTERN."
  (let ((said ""))
    (check name
           (wait (lambda ()
                   (setq said (with-current-buffer (messages-buffer) (buffer-string)))
                   (string-match-p pattern said)))
           said)))

(defun go-to (line)
  (goto-char (point-min))
  (forward-line (1- line))
  (back-to-indentation))

(defun run ()
  (find-file "src/main.rs")
  (apply #'eglot (eglot--guess-contact))
  (check "the client attaches" (wait #'eglot-managed-p))
  (becomes "hints" (labels 'before))

  (go-to 14)
  (let (shown)
    ;; What eldoc shows below the window or in its buffer.
    (eglot-hover-eldoc-function (lambda (text &rest _) (setq shown text)))
    (wait (lambda () shown))
    (check "hover" (and shown (string-match-p "50\\.0%" shown) (string-match-p "with calls" shown)) shown))

  (let* ((server (eglot-current-server))
         (actions (eglot-code-actions (point) (point) nil nil)))
    (check "code actions" (> (length actions) 0) actions)
    (eglot-execute server (elt actions 0))
    (says "the first shows the callers of the line" "words::main")
    (eglot-execute server '(:title "" :command "perflens.showStatus" :arguments []))
    (says "the answer of a command is to be seen" "2\\.00s")
    (eglot-execute server '(:title "" :command "perflens.nextHotspot" :arguments []))
    (check "the next hot spot is the hottest line"
           (wait (lambda () (= 22 (line-number-at-pos)))) (line-number-at-pos)))

  (go-to 9)
  (insert "let _before = \"é 🔥\";\n")
  (becomes "a line typed above moves the hints" (labels 'before 9))
  (go-to 16)
  (end-of-line)
  (insert " // changed")
  (becomes "a changed line loses its hint" (labels 'before 9 15))
  (revert-buffer t t)
  (becomes "the old text again, and they are back" (labels 'before))

  (rename-file "../after.pb.gz" "../cpu.pb.gz" t)
  (becomes "the profile written again changes the hints" (labels 'after))

  ;; A setting changed while the server runs: diagnostics, by way of Flymake.
  (setq-default eglot-workspace-configuration '(:perflens (:diagnostics (:enabled t))))
  (eglot-signal-didChangeConfiguration (eglot-current-server))
  (let (diagnostics)
    (check "diagnostics of the functions"
           (wait (lambda ()
                   (setq diagnostics (mapcar (lambda (each)
                                               (cons (line-number-at-pos (flymake-diagnostic-beg each))
                                                     (flymake-diagnostic-text each)))
                                             (flymake-diagnostics)))
                   (and (assq 4 diagnostics) (assq 11 diagnostics) (assq 21 diagnostics))))
           diagnostics))

  (set-buffer-modified-p nil)
  (eglot-shutdown (eglot-current-server) nil 10)
  (check "the client stops" (not (eglot-managed-p)))
  (check "no error in *Messages*"
         (with-current-buffer (messages-buffer)
           (goto-char (point-min))
           (not (re-search-forward "\\berror\\b" nil t)))
         (with-current-buffer (messages-buffer) (buffer-string)))
  (say "done\n"))

(condition-case problem (run) (error (check "the script" nil problem)))
