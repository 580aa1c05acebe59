(require 'perflens)
(setq perflens-settings '(:source (:file "cpu.pb.gz")))
(perflens-setup)
