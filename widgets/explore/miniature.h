// Miniature: a schedule in a few hundred pixels, one row per rank, without text. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "widgets/theme.h"
#include "widgets/themed_widget.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

class Miniature : public ThemedWidget {
    Q_OBJECT
public:
    explicit Miniature(QWidget* parent = nullptr);
    // null: only the note
    void setPanel(std::shared_ptr<const TimelinePanel> panel, const QString& title, const QString& note);
    const QString& title() const { return m_title; }
    QSize sizeHint() const override { return {230, 150}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    std::shared_ptr<const TimelinePanel> m_panel;
    QString m_title, m_note;
};

} // namespace stagewright
