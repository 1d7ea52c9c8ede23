// ExportDialog: settings of an exported picture, with a live preview. It remembers the last settings and writes nothing
// itself. GUI thread only.
#pragma once

#include <QDialog>
#include <QLabel>
#include <QTimer>

#include "widgets/export/picture.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QSpinBox;

namespace stagewright {

class ExportDialog : public QDialog {
    Q_OBJECT
public:
    // onScreen: current size of the view in logical pixels, the preset "as on screen".
    ExportDialog(PictureContent content, QSize onScreen, QWidget* parent = nullptr);

    PictureStyle style() const;
    PictureKind kind() const;
    void setStyle(const PictureStyle& style);
    void setKind(PictureKind kind);
    void showFault(const Error& error); // below the preview; the fields stay unchanged
    QString noteText() const { return m_note->text(); }
    bool settled() const { return !m_later.isActive(); } // the preview is up to date
    QImage preview() const { return m_image; }
    QString sizeText() const { return m_size->text(); }

signals:
    void saveAsked();
    void copyAsked(); // to the clipboard, as an image

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void build();
    void refill();  // the fields of the chosen style
    void changed(); // updates the preview with a short delay
    void draw();
    void remember() const;
    void restore();

    PictureContent m_content;
    QSize m_onScreen;
    QLabel* m_view;
    QLabel* m_size;
    QLabel* m_note;
    QFormLayout* m_form;
    QComboBox *m_kind, *m_look, *m_preset, *m_scale, *m_dpi;
    QSpinBox *m_width, *m_height;
    QDoubleSpinBox *m_millimetres, *m_points;
    QCheckBox *m_caption, *m_legend, *m_notes, *m_hatch;
    std::vector<QCheckBox*> m_parts;
    QPushButton* m_save = nullptr;
    QImage m_image;
    QTimer m_later;
    bool m_quiet = true; // until all fields exist
};

} // namespace stagewright
